"""Runs all tests of the repository, and ends with one line that counts them: `N passed, N failed, N skipped`.

Each runner's own closing line is printed too. What fails, or is skipped, is shown with its output or its reason; a
runner that fails without naming a test counts as one failure, and so does anything that the tests leave on the machine.

A few Go tests that failed run once more at the end, each by itself: a busy machine may have starved them.
"""

from __future__ import annotations

import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from xml.etree import ElementTree

import leftovers

ROOT = pathlib.Path(__file__).resolve().parent.parent
TELLING = "coverage: "  # what lines of tests that pass begin with that are shown
SHORT = 20  # lines of what failed are shown again at the end, where only that is kept
WIDE = 240  # characters of each
PACKAGES = 3  # of Go whose tests run at the same time
AT_ONCE = 3  # tests of a package that run in parallel: most wait more than they compute
LONGEST = ["./test", "./internal/speculate/simulation", "./internal/worker", "./internal/sandbox/native"]  # begin first
LIMIT = "60m"  # for the tests of one package, on a machine that is busy with other work too
SECOND_TRIES = 3  # Go tests that may run once more; of more that failed, none does
PURE = (
    "internal/speculate",
    "internal/schedule",
    "internal/state",
    "internal/memo",
)  # no clock, no process: a failure there is a fault
SLOWEST = 20  # tests are named at the end


@dataclass
class Count:
    """How many tests ended how."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0

    def __add__(self, other: Count) -> Count:
        """Add two counts."""
        return Count(self.passed + other.passed, self.failed + other.failed, self.skipped + other.skipped)

    def __str__(self) -> str:
        """Word the count as the closing line."""
        return f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped"


class GoReport:
    """Reads what `go test -json` says."""

    def __init__(self, folder: pathlib.Path = ROOT) -> None:
        self.folder = folder  # of the module
        self.endings: dict[tuple[str, str], str] = {}  # of each test: pass, fail or skip
        self.seconds: dict[tuple[str, str], float] = {}
        self.broken = 0  # packages that did not build or ended before their tests
        self.output: dict[tuple[str, str], list[str]] = defaultdict(list)
        self.short: dict[tuple[str, str], list[str]] = defaultdict(list)  # why a top-level test failed

    @property
    def count(self) -> Count:
        """Count the tests, and each broken package as a failure."""
        ended = Counter(self.endings.values())
        return Count(ended["pass"], ended["fail"] + self.broken, ended["skip"])

    @property
    def failed(self) -> list[tuple[str, str]]:
        """Name the top-level tests that failed, each with its package."""
        return [name for name, ending in self.endings.items() if ending == "fail" and "/" not in name[1]]

    def add(self, event: dict) -> None:
        """Take one event."""
        package = event.get("Package") or event.get("ImportPath", "")
        test = event.get("Test", "")
        match event["Action"]:
            case "output" | "build-output":
                self.output[package, test].append(event["Output"])
            case "pass" | "fail" | "skip" as ending if test:
                self.seconds[package, test] = event.get("Elapsed", 0.0)
                self.test(package, test, ending)
            case "pass" | "fail" as ending:
                self.package(package, event, ending)

    def test(self, package: str, test: str, ending: str) -> None:
        """Count one test; show why it failed or was skipped."""
        lines = "".join(self.output.pop((package, test), []))
        self.endings[package, test] = ending
        if ending == "pass":
            told = [line.strip() for line in lines.splitlines() if line.strip().startswith(TELLING)]
            print("".join(f"{line}\n" for line in told), end="", flush=True)
        elif ending == "skip":
            reason = [line.strip() for line in lines.splitlines() if not line.startswith(("===", "---"))]
            print(f"skipped  {package} {test}: {' '.join(reason)}", flush=True)
        else:
            print(f"FAILED   {package} {test}\n{lines}", flush=True)
            why = [line[:WIDE] for line in lines.splitlines() if not line.startswith("===")]
            self.short[package, test.partition("/")[0]] += [f"FAILED   {package} {test}, in short:", *why[:SHORT]]

    def package(self, package: str, event: dict, ending: str) -> None:
        """Print a package's line. One that failed without saying so as its last word did not build, or ended early."""
        said = self.output.pop((package, ""), [])
        named = any(of == package for of, _ in self.failed)
        if ending == "fail" and not (named and "FAIL\n" in said):
            self.broken += 1
            build = self.output.pop((event.get("FailedBuild", ""), ""), [])
            print("".join(build + said), flush=True)
            self.unended(package)
        print(f"{'ok' if ending == 'pass' else 'FAIL':8} {package} {event.get('Elapsed', 0):.1f}s", flush=True)

    def unended(self, package: str) -> None:
        """Show what tests printed that were running when their package ended: all goroutines, if that took too long."""
        for test in [name for of, name in self.output if of == package and name]:
            lines = "".join(self.output.pop((package, test))).splitlines()
            print(f"UNENDED  {package} {test}", *lines, sep="\n", flush=True)
            where = [line[:WIDE] for line in lines if "_test.go:" in line]
            self.short[package, ""] += [f"UNENDED  {package} {test}, in short:", *where[-SHORT:]]

    def replace(self, package: str, test: str, second: GoReport) -> list[str]:
        """Take the endings of a top-level test and of its parts from a second report; give why it failed at first."""
        for name in [(of, one) for of, one in self.endings if of == package and one.partition("/")[0] == test]:
            del self.endings[name]
        self.endings |= second.endings
        return self.short.pop((package, test))


def go_tests(folder: pathlib.Path, *what: str) -> GoReport:
    """Run `go test` in a module."""
    report = GoReport(folder)
    command = ["go", "test", "-json", "-vet=off", f"-timeout={LIMIT}", f"-parallel={AT_ONCE}", *what]  # make check vets
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout or ():
            if line.startswith("{"):
                report.add(json.loads(line))
            else:
                print(line, end="", flush=True)
    if process.returncode and not report.count.failed:
        report.broken += 1
    print(f"go test: {report.count}", flush=True)
    return report


def second_tries(reports: list[GoReport]) -> list[str]:
    """Run each Go test that failed once more, by itself: only if they are few, and all may fail for want of time.

    A test that then passes counts as passed. Name each such test, with its first output.
    """
    failed = [(report, package, test) for report in reports for package, test in report.failed]
    broken = any(report.broken for report in reports)
    if broken or len(failed) > SECOND_TRIES or any(is_pure(package) for _, package, _ in failed):
        return []
    passed = []
    for report, package, test in failed:
        second = go_tests(report.folder, "-count=1", f"-run=^{test}$", package)
        if second.endings.get((package, test)) == "pass" and not second.broken:
            why = "\n".join(report.replace(package, test, second))
            passed.append(f"AGAIN    {package} {test}: passed by itself; failed at first, with this output:\n{why}")
    return passed


def is_pure(package: str) -> bool:
    """Tell whether a package has no clock and no process."""
    return any(f"/{pure}/" in f"{package}/" for pure in PURE)


def slowest(reports: list[GoReport]) -> list[str]:
    """Name the top-level Go tests that took longest."""
    tests = [(took, *name) for report in reports for name, took in report.seconds.items() if "/" not in name[1]]
    return [f"{took:8.1f}s {package} {test}" for took, package, test in sorted(tests, reverse=True)[:SLOWEST]]


def raced_simulations() -> GoReport:
    """Run simulations with the race detector, where there is a C compiler."""
    if shutil.which("cc"):
        return go_tests(
            ROOT, "-race", "-run=^TestSeeds$", "./internal/speculate/simulation", "./internal/schedule/simulation"
        )
    print("skipped: simulations with the race detector, as there is no C compiler", flush=True)
    report = GoReport()
    report.endings["simulation", "race"] = "skip"
    return report


def python_tests() -> Count:
    """Run pytest, and print what it says, with its own closing line, at its end."""
    with tempfile.TemporaryDirectory() as folder:
        xml = pathlib.Path(folder) / "report.xml"
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junit-xml={xml}"]
        ran = subprocess.run(
            command, cwd=ROOT, check=False, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        print(ran.stdout, end="", flush=True)
        if not xml.exists():
            return Count(failed=1)
        count = Count()
        for suite in ElementTree.parse(xml).iter("testsuite"):
            bad = int(suite.get("failures", 0)) + int(suite.get("errors", 0))
            skipped = int(suite.get("skipped", 0))
            count += Count(int(suite.get("tests", 0)) - bad - skipped, bad, skipped)
    if ran.returncode and not count.failed:
        count.failed = 1
    return count


def nothing_left(before: set[str]) -> Count:
    """Look at what is left of all tests."""
    found = leftovers.left(before)
    if not found:
        print("nothing left: no handler, mount or connection of the tests", flush=True)
        return Count()
    print("FAILED   the tests have left\n" + "\n".join(found), flush=True)
    return Count(failed=1)


def small_suites() -> tuple[Count, list[GoReport]]:
    """Run all but the main module's tests, one suite after the other."""
    return python_tests(), [go_tests(ROOT / "bench", "./..."), raced_simulations()]


def suites() -> str:
    """Run every suite, whatever the others did, and give the counts as JSON.

    Most tests wait more than they compute, so the small suites run beside the main one.
    """
    with ThreadPoolExecutor() as pool:
        small = pool.submit(small_suites)
        main = go_tests(ROOT, f"-p={PACKAGES}", *LONGEST, "./...")
        python, reports = small.result()
    reports.append(main)
    again = [] if python.failed else second_tries(reports)
    print("the slowest tests:", *slowest(reports), sep="\n")
    print(*(line for report in reports for lines in report.short.values() for line in lines), *again, sep="\n")
    if again:
        print(f"{len(again)} passed only at the second try")
    sys.stdout.flush()
    return json.dumps(asdict(sum((report.count for report in reports), python)))


def main() -> int:
    """Run all tests, and look at what they leave."""
    start = time.monotonic()
    before = leftovers.marks()
    counted = leftovers.adopt(suites)
    total = Count(**json.loads(counted)) if counted else Count(failed=1)
    total += nothing_left(before)
    print(f"all tests ran in {time.monotonic() - start:.0f} s", flush=True)
    print(total, flush=True)
    return 1 if total.failed or not total.passed else 0


if __name__ == "__main__":
    sys.exit(main())
