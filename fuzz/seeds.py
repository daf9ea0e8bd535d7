#!/usr/bin/env python3
"""Writes inputs for the fuzz targets to start from, taken from ../tests/vectors: seeds.py [CORPUS]"""

import json
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
VECTORS = HERE.parent / "tests" / "vectors"
# The JSON dialect: objects and bare numbers as keys, null for absent.
DIALECT = [
    '{"offsetTable":{{"brokerName":"b","queueId":1,"topic":"t"}:-1}}',
    '{"consumerTable":{"c":{{"brokerName":"b","queueId":1,"topic":"t"}:9}},"messageQueueTable":{}}',
    '{"brokerDatas":[{"brokerAddrs":{0:"10.0.0.1:10911"},"brokerName":"b","cluster":"c","zoneName":null}]}',
    '{"acks":[{"b":"BQI=","c":"g","it":4,"pt":3,"q":1,"r":"0","rq":2,"so":7,"t":"T"}],"brokerName":"br"}',
    '{"mqTable":{{"brokerName":"b","queueId":1,"topic":"t"}:{"droped":false}},"statusTable":{"t":{"pullRT":0.5}}}',
]
RECEIPTS = ["0 3 77;1 3 8;2 3 9", "0 3 77,78;1 3 8", "0 3 2;0 qo3%90 5;1 3 0", "0;1;2", "TagA || TagB",
            "djEgVDEgYnJva2VyLWEgMTcwMDAwMDAwMDAwMCA3RjAwMDAwMTAwMDEwMDAy"]


def lines(name):
    with open(VECTORS / f"{name}.jsonl", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def seeds():
    for line in lines("frame"):
        frame = bytes.fromhex(line["frame"])
        header = frame[8:8 + int.from_bytes(frame[5:8], "big")]
        yield "frames", bytes(2) + frame
        yield "header_json" if line["serialize"] == "JSON" else "header_rocketmq", header
    for line in lines("stored_message"):
        yield "stored_messages", bytes.fromhex(line["wire"])
    for line in lines("batch_message"):
        yield "batch", bytes.fromhex(line["batchBody"])
    for line in lines("properties"):
        yield "properties", bytes.fromhex(line["encoded"])
    for line in lines("route"):
        yield "json", line["route"].encode()
    for text in DIALECT:
        yield "json", text.encode()
    for text in [line["extraInfo"] for line in lines("pop_extra_info")] + RECEIPTS:
        yield "receipts", text.encode()
    for line in lines("offset_msg_id"):
        yield "receipts", line["msgId"].encode()


def main():
    corpus = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "corpus"
    for number, (target, content) in enumerate(seeds()):
        folder = corpus / target
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"seed-{number}").write_bytes(content)


main()
