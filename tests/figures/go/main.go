// The Go client in a group whose members come and go; see ../README.md for the words and the lines.
package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	rocketmq "github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/rlog"
)

var words = map[string]string{}

func text(key, otherwise string) string {
	if value, found := words[key]; found {
		return value
	}
	return otherwise
}

func number(key string, otherwise int) int {
	if value, err := strconv.Atoi(words[key]); err == nil {
		return value
	}
	return otherwise
}

// Deliveries of all members of this process: which places were seen, and how many came again.
type deliveries struct {
	lock  sync.Mutex
	seen  map[string]bool
	again int64
	all   int64
}

func (d *deliveries) note(message *primitive.MessageExt) {
	place := fmt.Sprintf("%s#%d@%d", message.Queue.BrokerName, message.Queue.QueueId, message.QueueOffset)
	d.lock.Lock()
	defer d.lock.Unlock()
	d.all++
	if d.seen[place] {
		d.again++
	}
	d.seen[place] = true
}

func (d *deliveries) repeated() int64 {
	d.lock.Lock()
	defer d.lock.Unlock()
	return d.again
}

type member struct {
	client    rocketmq.PushConsumer
	allocated atomic.Int64
}

func newMember(instance string, d *deliveries, changed func(int)) *member {
	m := &member{}
	m.allocated.Store(-1)
	strategy := func(group, me string, queues []*primitive.MessageQueue, ids []string) []*primitive.MessageQueue {
		mine := consumer.AllocateByAveragely(group, me, queues, ids)
		if len(queues) > 0 && queues[0].Topic == text("topic", "T8") && m.allocated.Swap(int64(len(mine))) != int64(len(mine)) {
			changed(len(mine))
		}
		return mine
	}
	client, err := rocketmq.NewPushConsumer(
		consumer.WithNameServer([]string{text("ns", "127.0.0.1:9876")}),
		consumer.WithGroupName(text("group", "churn")),
		consumer.WithInstance(instance),
		consumer.WithStrategy(strategy),
		consumer.WithConsumeFromWhere(consumer.ConsumeFromFirstOffset))
	check(err)
	work := time.Duration(number("work_us", 0)) * time.Microsecond
	check(client.Subscribe(text("topic", "T8"), consumer.MessageSelector{},
		func(_ context.Context, messages ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
			for _, message := range messages {
				d.note(message)
			}
			if work > 0 {
				time.Sleep(work)
			}
			return consumer.ConsumeSuccess, nil
		}))
	m.client = client
	return m
}

func check(err error) {
	if err != nil {
		fmt.Printf("{\"error\":%q}\n", err.Error())
		os.Exit(1)
	}
}

// Milliseconds since began once a condition holds.
func until(began time.Time, condition func() bool) float64 {
	for !condition() {
		if time.Since(began) > 60*time.Second {
			check(fmt.Errorf("not settled within 60 s"))
		}
		time.Sleep(200 * time.Microsecond)
	}
	return float64(time.Since(began).Microseconds()) / 1000
}

func churn() {
	d := &deliveries{seen: map[string]bool{}}
	queues, pause := int64(number("queues", 8)), time.Duration(number("pause_ms", 1500))*time.Millisecond
	nothing := func(int) {}
	first := newMember("a", d, nothing)
	check(first.client.Start())
	until(time.Now(), func() bool { return first.allocated.Load() == queues })
	for try := 0; try < number("tries", 5); try++ {
		time.Sleep(pause)
		before := d.repeated()
		second := newMember(fmt.Sprintf("b%d", try), d, nothing)
		began := time.Now()
		check(second.client.Start())
		join := until(began, func() bool { return first.allocated.Load() == queues/2 && second.allocated.Load() == queues/2 })
		time.Sleep(pause)
		between := d.repeated()
		began = time.Now()
		ended := make(chan struct{})
		go func() { check(second.client.Shutdown()); close(ended) }()
		leave := until(began, func() bool { return first.allocated.Load() == queues })
		<-ended
		time.Sleep(pause)
		fmt.Printf("{\"join_ms\":%.1f,\"leave_ms\":%.1f,\"again_join\":%d,\"again_leave\":%d}\n",
			join, leave, between-before, d.repeated()-between)
	}
	check(first.client.Shutdown())
	fmt.Printf("{\"done\":%d}\n", d.all)
}

func stay() {
	d := &deliveries{seen: map[string]bool{}}
	m := newMember(text("instance", "a"), d, func(queues int) {
		fmt.Printf("{\"allocated\":%d,\"at_ms\":%.1f}\n", queues, float64(time.Now().UnixMicro())/1000)
	})
	check(m.client.Start())
	bufio.NewReader(os.Stdin).ReadString(0)
	check(m.client.Shutdown())
	fmt.Printf("{\"done\":%d}\n", d.all)
}

func main() {
	rlog.SetLogLevel("fatal")
	for _, word := range os.Args[2:] {
		key, value, _ := strings.Cut(word, "=")
		words[key] = value
	}
	switch os.Args[1] {
	case "churn":
		churn()
	case "stay":
		stay()
	default:
		check(fmt.Errorf("churn or stay, not %s", os.Args[1]))
	}
}
