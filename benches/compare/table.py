"""All results as one Markdown table: a line for each workload, peer and name."""

import statistics

HEADINGS = ("workload", "peer", "wall s", "messages/s", "time ÷", "CPU µs a message", "CPU ÷", "p50 µs", "p99 µs", "p99.9 µs",
            "memory MiB", "errors", "more")


def markdown(rows):
    head, *body = [[str(cell) for cell in row] for row in rows]
    lines = [head, ["---"] * len(head), *body]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def number(value, digits=2):
    if value is None:
        return ""
    if 0 < abs(value) < 0.1:
        return f"{value:.2g}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.{digits}f}"


def spread(values, digits=2):
    """The median, and from where to where the values reach if they are several."""
    middle = number(statistics.median(values), digits)
    return middle if len(values) == 1 else f"{middle} ({number(min(values), digits)} to {number(max(values), digits)})"


def of(results, workloads, reference):
    """`reference` is the peer that the columns with ÷ divide by."""
    rows = [[heading.replace("÷", f"÷ {reference}") for heading in HEADINGS]]
    for workload in workloads:
        for peer in results.peers(workload.name):
            good = results.of(peer, workload.name)
            failed = results.failures(peer, workload.name)
            for name in dict.fromkeys(row.get("name") for row in good):
                rows.append(line(results, workload, peer, name, failed, reference))
            if failed and not good:
                what = f"FAILED: {failed[0]['failed']} {failed[0].get('stderr', '')[-200:]}"
                rows.append([f"{workload.letter} {workload.name}", peer, *[""] * 9, len(failed), what])
    return markdown(rows)


def line(results, workload, peer, name, failed, reference):
    rows = results.of(peer, workload.name, name)

    def middle(figure, scale=1):
        values = results.by_run(peer, workload.name, figure, name).values()
        return statistics.median(values) * scale if values else None

    def ratio(figure):
        values = results.ratios(peer, [reference], workload.name, figure, name).values()
        return spread(values) if values else ""

    is_paced = workload.name in ("latency", "idle", "wakeup")
    has_times = middle("wall_s") is not None
    return [
        " ".join(filter(None, (workload.letter, workload.name, name))), peer,
        number(middle("wall_s")),
        number(middle("rate")) if has_times and not is_paced else "",
        ratio("time") if has_times and not is_paced else "",
        number(middle("cpu", 1e6)) if workload.name != "idle" else "",
        ratio("cpu"),
        number(middle("p50_us"), 1), number(middle("p99_us"), 1), number(middle("p999_us"), 1),
        number(middle("rss_peak_mib"), 1),
        sum(row.get("errors", 0) for row in rows) + len(failed),
        "; ".join(more(results, workload, peer, name, failed)),
    ]


def more(results, workload, peer, name, failed):
    """What only some workloads have."""
    for figure, text, digits in (
        ("first_s", "first message {} s", 3), ("twice", "{} twice", 0), ("join_s", "join {} s", 4), ("leave_s", "leave {} s", 4),
        ("start_s", "start {} s", 4), ("shutdown_s", "shutdown {} s", 4), ("ns", "{} ns", 1), ("min_ns", "best {} ns", 1),
        ("threads", "{} threads", 0), ("rss_mib", "RSS {} MiB", 1),
    ):
        values = results.by_run(peer, workload.name, figure, name).values()
        if values:
            yield text.format(spread(values, digits))
    if workload.name == "idle":
        yield f"CPU {spread(results.by_run(peer, workload.name, 'cpu_s').values(), 4)} s"
    if failed:
        yield f"{len(failed)} runs FAILED: {failed[0]['failed']}"
