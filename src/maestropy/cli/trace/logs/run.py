"""Run the commands over logs after their options are parsed: trace with the library, write the reports."""

import asyncio
import gc
import os
from collections.abc import Sequence
from dataclasses import replace

from maestropy.aio.clock import Clock
from maestropy.cli import screen
from maestropy.cli.trace.logs import inputs as trace_inputs
from maestropy.cli.trace.logs import report_files
from maestropy.cli.trace.logs.request_options import DepthSelection, ListOptions, ReportingOptions, judging
from maestropy.trace.logs import tracing
from maestropy.trace.logs.index import ReadOptions
from maestropy.trace.logs.selection import RequestFilter, RequestQuery
from maestropy.trace.output import Exit, json_text
from maestropy.trace.report import coverage
from maestropy.trace.report.request_report import FewRequests, ManyRequests, Views


def trace_one(paths: Sequence[str], query: RequestQuery, *, reporting: ReportingOptions, depth: DepthSelection) -> int:
    """Trace the requests of one resource or a few."""
    options, with_timeline = judging(reporting), depth.show == "timeline"
    report_files.check(reporting, paths)
    needs_lines = reporting.output != "text" or reporting.html is not None or depth.trace_log or with_timeline
    now = Clock().epoch()
    with trace_inputs.seekable(paths) as inputs, trace_inputs.progress(inputs) as progress:
        request_tracer = tracing.RequestTracer(inputs, options=options, now=now, progress=progress)
        logs = tracing.trace_requests(
            request_tracer, replace(query, needs_lines=needs_lines), options=options, warn=_warn
        )
        report = FewRequests(
            traces=logs.traces,
            environment=logs.environment,
            now=now,
            with_timeline=with_timeline,
            context_lines=depth.context_lines,
            is_partial=logs.scan.is_partial,
        )
        if depth.db_dsn:
            from maestropy.trace import library  # with all that reaches clusters, which logs do not need

            traces, checks = asyncio.run(library.check_requests(depth.db_dsn, logs.traces))
            report = replace(report, traces=traces, checks=checks)
        report_files.put(report.pieces(reporting.output), out=reporting.out)
        if reporting.csv is not None:
            report_files.put(report.pieces("csv"), out=reporting.csv, option="--csv")
        if reporting.html is not None:
            report_files.put(report.pieces("html"), out=reporting.html, option="--html")
        if depth.trace_log:
            moment = f"{Clock().now():%Y-%m-%d_%H-%M-%S}"
            report_files.put_trace_log(report.pieces("log"), paths, moment=moment, folder=depth.output_dir)
    return report.exit_code


def trace_all(paths: Sequence[str], select: RequestFilter, *, reporting: ReportingOptions, listing: ListOptions) -> int:
    """Trace every request in the logs."""
    clock, options = Clock(), judging(reporting)
    report_files.check(reporting, paths, index=listing.index)
    started = clock.monotonic()
    # Millions of small values without cycles: a search for cycles would take as long as reading.
    gc.disable()
    with trace_inputs.seekable(paths) as inputs, trace_inputs.progress(inputs) as progress:
        reading = ReadOptions(
            now=clock.epoch(),
            progress=progress,
            jobs=listing.jobs or os.cpu_count() or 1,
            index="off" if "-" in paths else listing.index,  # standard input cannot be read again
            log=_log_index if listing.verbose else _ignore,
        )
        logs = tracing.read_all(inputs, reading=reading, options=options, warn=_warn)
    views = Views(group_by=listing.group_by, top=listing.top, matrix=listing.matrix, histogram=listing.histogram)
    report = ManyRequests(logs=logs, views=views, now=clock.epoch())
    report.judge(select, form=reporting.output, has_page=reporting.html is not None)
    if report.nothing_matches:
        _warn(report.nothing_matches)
    if reporting.csv is not None:
        report_files.put(report.pieces("csv"), out=reporting.csv, option="--csv")
    if reporting.html is not None:
        report_files.put(report.pieces("html"), out=reporting.html, option="--html")
    report_files.put(report.pieces(reporting.output, took=clock.monotonic() - started), out=reporting.out)
    return report.exit_code


def check(paths: Sequence[str], *, output: str) -> int:
    """Report what the logs cover."""
    with trace_inputs.seekable(paths) as inputs, trace_inputs.progress(inputs) as progress:
        environment = tracing.environment_of(inputs, now=Clock().epoch(), progress=progress, warn=_warn)
    screen.write(json_text(coverage.model(environment)) if output == "json" else coverage.text(environment))
    return Exit.HEALTHY


def _warn(text: str) -> None:
    screen.write_error(f"Warning: {text}\n")


def _log_index(text: str) -> None:
    screen.write_error(f"Index: {text}\n")


def _ignore(_: str) -> None:
    return
