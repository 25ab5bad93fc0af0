"""What each test came to, a line in a file as soon as it ends, whichever workers of pytest-xdist they run in: a run that was cut off can be gone
on with, and one begins with the tests that took longest in that before."""

import os
import resource
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
WORST = ["passed", "skipped", "failed"]


def processor_seconds():
    """Of this process, and of those that it ran and that ended: compilers, and what they compiled."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def group_of(item):
    """What runs in one worker."""
    group = item.get_closest_marker("xdist_group")
    return group.args[0] if group else item


def name_of(item):
    """Wherever pytest is called, and without the group that pytest-xdist adds."""
    return f"{os.path.relpath(item.path, ROOT)}::{item.nodeid.partition('::')[2].removesuffix(f'@{group_of(item)}')}"


def read(path):
    """{test: outcome}, {test: seconds}, of the last that is said of each."""
    lines = [line.split("\t") for line in path.read_text().splitlines()] if path.exists() else []
    whole = [words for words in lines if len(words) == 4]
    return {name: outcome for outcome, _, _, name in whole}, {name: float(seconds) for _, seconds, _, name in whole}


class Tally:
    """A plugin, of the process that writes the file and of workers. Those are told what was read: a worker that comes later, in place of one that
    died, must collect the same tests."""

    def __init__(self, config):
        self.path = Path(config.getoption("--tally"))
        self.worker = hasattr(config, "workerinput")
        if self.worker:
            self.passed, self.seconds = set(config.workerinput["passed"]), config.workerinput["seconds"]
            return
        outcomes, self.seconds = read(self.path)
        self.passed = {name for name in outcomes if outcomes[name] == "passed"} if config.getoption("--continue") else set()
        config.option.loadscopereorder = not self.seconds
        self.reports = {}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.file = self.path.open("a", buffering=1)

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node):
        node.workerinput |= {"passed": sorted(self.passed), "seconds": self.seconds}

    def pytest_collection_modifyitems(self, config, items):
        left_out = [item for item in items if name_of(item) in self.passed]
        items[:] = [item for item in items if name_of(item) not in self.passed]
        if left_out:
            config.hook.pytest_deselected(items=left_out)
        if self.worker:
            self.longest_first(items)

    def longest_first(self, items):
        """Groups stay together. What never ran may be the longest. (In one process, fixtures would be made anew at each change of files.)"""
        times = {}
        for item in items:
            times[group_of(item)] = times.get(group_of(item), 0) + self.seconds.get(name_of(item), float("inf"))
        items.sort(key=lambda item: -times[group_of(item)])

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item):
        item.processor_before = processor_seconds()
        yield

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self, item, call):
        report = (yield).get_result()
        if call.when == "teardown":
            report.user_properties.append(("tally", [name_of(item), processor_seconds() - item.processor_before]))

    def pytest_runtest_logreport(self, report):
        if self.worker:
            return
        reports = self.reports.setdefault(report.nodeid, [])
        reports.append(report)
        if report.when not in ("setup", "call"):  # "???" is what pytest-xdist says of a worker that died
            outcome = max((one.outcome for one in reports), key=WORST.index)
            name, processor = dict(report.user_properties).get("tally", [report.nodeid, 0])
            self.file.write(f"{outcome}\t{sum(one.duration for one in reports):.2f}\t{processor:.2f}\t{name}\n")
            del self.reports[report.nodeid]

    def pytest_terminal_summary(self, terminalreporter):
        if self.passed and not self.worker:
            terminalreporter.write_line(f"left out {len(self.passed)}: passed before, says {self.path}")
