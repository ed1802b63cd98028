"""pytest as the workload: one test with its fixtures, or a whole suite, run by the environment's own pytest.

Loaded after the last subject. A small plugin takes the place of `reprocheck.pytest_plugin` in the trial: it knows the
same options, markers, hooks and fixtures, so that a suite that uses them is configured as it is outside, and it turns
what pytest reports into outputs.

Of one test the recorded values are outputs, and its failure is the trial's. Of a suite each test's outcome, failure
text and recorded values are outputs, called `NODEID :: NAME`; no test's failure is the trial's.
"""

import importlib
import importlib.machinery
import os
import re
import sys

from . import outputs, workload
from .workload import TargetError

__all__ = ["FLAGS", "INI", "MARKER", "OPTIONS", "SEPARATOR", "Failed", "Plugin", "load"]

SEPARATOR = " :: "
OUTCOME, FAILURE, REASON = "(outcome)", "(failure)", "(reason)"

# What `reprocheck.pytest_plugin` offers; a test compares the two.
OPTIONS = (
    *("--reprocheck", "--reprocheck-orders", "--reprocheck-repeat", "--reprocheck-jobs", "--reprocheck-timeout"),
    *("--reprocheck-explain", "--reprocheck-dir", "--reprocheck-json", "--reprocheck-html", "--reprocheck-baseline"),
)
FLAGS = ("--reprocheck-require-gpu",)
INI = tuple(option[2:].replace("-", "_") for option in OPTIONS + FLAGS)
MARKER = "reprocheck(imports=None, **options): run this test once per import order, in fresh interpreters"

# Options of pytest and of widespread plugins that stop early, wait for a person, or write a file which every trial
# would write: destination -> the value that keeps them quiet.
NEUTRAL = {
    "allure_report_dir": None,
    "failedfirst": False,
    "htmlpath": None,
    "json_report": False,
    "lf": False,
    "log_file": os.devnull,
    "maxfail": 0,
    "report_log": None,
    "stepwise": False,
    "trace": False,
    "usepdb": False,
    "xmlpath": None,
}
# Destination of a plugin's option -> arguments without which trials would not be alike, or not be one process.
CALM = {"no_cov": ("--no-cov",), "numprocesses": ("-n", "0")}

_ADDRESS = re.compile(r"0x[0-9a-fA-F]{6,}")
# The names that `tempfile` makes up.
_TEMPORARY = re.compile(r"(?<=/)tmp[a-z0-9_]{8}(?![a-z0-9_])")


class NothingSelected(Exception):
    """pytest ran no test."""

    fault_kind = "nothing"


class Failed(Exception):
    """The test, or pytest itself, failed; `fault_fields` go into the record in place of this exception's own."""

    def __init__(self, error, text):
        """`error` is what was raised, or a sentence; `text` is what pytest says about it."""
        super().__init__(str(error))
        self.fault_fields = {"message": str(error), "traceback": text}
        if isinstance(error, BaseException):
            self.fault_fields["exception"] = type(error).__module__ + "." + type(error).__qualname__


class HookSpecs:
    """The hooks that `reprocheck.pytest_plugin` offers: a conftest may implement them. Nobody calls them here."""

    def pytest_reprocheck_env(self, config, env):
        """See `reprocheck.pytest_plugin.hooks`."""

    def pytest_reprocheck_probes(self, config):
        """See `reprocheck.pytest_plugin.hooks`."""

    def pytest_reprocheck_result(self, config, nodeid, result):
        """See `reprocheck.pytest_plugin.hooks`."""


def load(job, sink, lines):
    """A function that runs pytest as the job's target says and returns `(None, False)`; outputs go through `sink`."""
    try:
        pytest = importlib.import_module("pytest")
    except ModuleNotFoundError as error:
        if error.name != "pytest":
            raise
        raise TargetError(
            "pytest isn't installed for `%s`; install it there, or choose another interpreter" % sys.executable
        ) from error
    target = job["target"]
    node = target["path"] + "::" + target["name"] if target["name"] else None
    plugin = _decorated(pytest)(pytest, job["folder"], node, sink, lines)
    stand_in = sys.modules["reprocheck"]
    _open_to_the_real(stand_in)
    # Whoever imports the real plugin (an entry point, `-p`, a conftest) gets this one.
    sys.modules["reprocheck.pytest_plugin"] = plugin
    stand_in.pytest_plugin = plugin
    arguments = ["-p", "no:reprocheck", *_cache_elsewhere(job["folder"], target["args"]), *target["args"]]
    return lambda: (plugin.run(arguments), False)


def _open_to_the_real(stand_in):
    """Where reprocheck is installed, let test files import its modules; `record` stays the trial's."""
    spec = importlib.machinery.PathFinder.find_spec("reprocheck")
    if spec is None or not spec.submodule_search_locations:
        return
    stand_in.__path__ = list(spec.submodule_search_locations)
    try:
        errors = importlib.import_module("reprocheck.errors")
    except Exception:  # another Python than it is written for
        stand_in.__path__ = []
        return
    for name in ("DivergenceError", "HarnessError", "ReprocheckError", "UsageError"):
        setattr(stand_in, name, getattr(errors, name, getattr(stand_in, name)))


def _cache_elsewhere(folder, arguments):
    """Leave the user's `.pytest_cache` alone: trials run side by side, and what failed last must not steer them."""
    given = " ".join(arguments) + os.environ.get("PYTEST_ADDOPTS", "")
    return [] if "no:cacheprovider" in given else ["-o", "cache_dir=" + folder + "/cache"]


class Plugin:
    """The trial's part of pytest."""

    def __init__(self, pytest, folder, node, sink, lines):
        """`node` is the only test to run, as pytest takes it on its command line; None for a suite."""
        self.__name__ = "reprocheck.pytest_plugin"  # the name it is registered by
        self._pytest = pytest
        self._folder = folder
        self._node = node
        self._sink = sink
        self._lines = lines
        self._reports = []
        self._error = None  # of the single test, or of pytest itself
        self._fatal = None  # ours, not the test's
        self._refused = None
        self._tests = 0
        self._outcome = None

    def run(self, arguments):
        """Run pytest to its end. Raises what makes the trial fail; of a suite, only what is not a test's own doing."""
        status = int(self._pytest.main(arguments, plugins=[self]))
        self._own_crash_file()
        if self._fatal is not None:
            raise self._fatal
        if self._refused is not None:
            raise TargetError("pytest refused its arguments: " + self._refused)
        if self._error is not None:
            raise self._error
        if self._outcome is None and self._tests == 0:
            what = "`%s`" % self._node if self._node else "any test with these arguments"
            raise NothingSelected("pytest did not run " + what + " (exit status %d)" % status)
        if status > 1 and status != 5:
            raise Failed("pytest ended with exit status %d" % status, None)
        if self._node:
            self._sink.record(OUTCOME, self._outcome)

    # configuration

    def pytest_addhooks(self, pluginmanager):
        """Let conftests implement our hooks."""
        pluginmanager.add_hookspecs(HookSpecs)

    def pytest_addoption(self, parser):
        """Accept our options, which mean nothing in a trial."""
        group = parser.getgroup("reprocheck")
        for option in OPTIONS:
            group.addoption(option, default=None)
        for option in FLAGS:
            group.addoption(option, action="store_true", default=None)
        for name in INI:
            parser.addini(name, "Of no effect in a trial")

    def pytest_cmdline_parse(self):
        """(wrapper) Keep why pytest could not be configured."""
        self._keep_refusal((yield))

    def pytest_load_initial_conftests(self, early_config, args):
        """(wrapper) Make trials alike, whatever plugins there are."""
        more = ["--basetemp=%s/basetemp" % self._folder, "--color=no"]
        known = early_config.known_args_namespace
        for name, arguments in CALM.items():
            if hasattr(known, name):
                more += arguments
        if hasattr(known, "no_cov"):
            known.no_cov = True  # pytest-cov decides in this very hook, by what was parsed before
        if hasattr(known, "randomly_seed") and not any("--randomly-seed" in arg for arg in args):
            more.append("--randomly-seed=0")
        end = args.index("--") if "--" in args else len(args)
        args[end:end] = more
        yield

    def pytest_cmdline_main(self, config):
        """(wrapper) Keep options from acting across trials, choose the test, and keep why pytest gave up."""
        for name, value in NEUTRAL.items():
            if hasattr(config.option, name):
                setattr(config.option, name, value)
        if self._node:
            config.args = [self._node]
        else:
            config.option.continue_on_collection_errors = True
        self._keep_refusal((yield))

    def pytest_configure(self, config):
        """Make the marker known."""
        config.addinivalue_line("markers", MARKER)

    def pytest_sessionstart(self):
        """Take back what pytest's own faulthandler plugin took: a crash's stack goes into the trial's folder."""
        self._own_crash_file()

    def pytest_collection_modifyitems(self, items):
        """Drop the `xfail` marks that expect a divergence: they are about the study, not about a trial."""
        for item in items:
            for node in item.listchain():
                node.own_markers[:] = [mark for mark in node.own_markers if not self._about_study(mark)]

    def pytest_collection_finish(self):
        """Conftests and test files are loaded, by a loader of pytest's own."""
        workload.loaded()

    def _about_study(self, mark):
        if mark.name != "xfail":
            return False
        raises = mark.kwargs.get("raises")
        expected = raises if isinstance(raises, tuple) else (raises,)
        return self._node is not None or sys.modules["reprocheck"].DivergenceError in expected

    # what happens

    def pytest_collectreport(self, report):
        """A module that could not be collected is a result of the suite."""
        if report.failed and self._node is None:
            self._tests += 1
            self._save(report.nodeid, "collection error", FAILURE, report.longreprtext)
        elif report.failed:
            self._error = self._error or Failed("the test's module could not be collected", report.longreprtext)

    def pytest_exception_interact(self, call, report):
        """Keep the first exception of a single test, and ours of any."""
        error = call.excinfo.value
        if isinstance(error, (outputs.Unsupported, outputs.StorageError)):
            self._fatal = self._fatal or error
        elif self._node:
            self._error = self._error or Failed(error, self._plain(report.longreprtext))

    def pytest_internalerror(self, excrepr, excinfo):
        """A fault in pytest or one of its plugins."""
        self._error = self._error or Failed(excinfo.value, str(excrepr))

    def pytest_runtest_logstart(self, nodeid):
        """A test begins."""
        self._lines.write("test", name=nodeid)
        self._reports = []
        if self._node is None:
            self._sink.prefix = nodeid + SEPARATOR

    def pytest_runtest_logreport(self, report):
        """A phase of a test ended."""
        self._reports.append(report)

    def pytest_runtest_logfinish(self, nodeid):
        """A test ended."""
        self._tests += 1
        self._sink.prefix = ""
        self._outcome, name, text = summary(self._reports)
        if self._node is None:
            self._save(nodeid, self._outcome, name, text)
        elif self._outcome == "skipped":
            self._sink.record(REASON, text)
        self._lines.write("tested")

    # fixtures

    def record(self):
        """(fixture) `record(name, value)` keeps an output."""
        return self._sink.record

    def reprocheck(self):
        """(fixture) No study inside a trial."""
        self._pytest.skip("this test starts a study of its own, which a trial does not")

    # details

    def _save(self, test, outcome, name, text):
        self._sink.record(test + SEPARATOR + OUTCOME, outcome)
        if text:
            self._sink.record(test + SEPARATOR + name, self._plain(text))

    def _plain(self, text):
        """The text without what is another in every process: addresses, the trial's folder, names made up."""
        for folder in {self._folder, os.path.realpath(self._folder)}:
            text = text.replace(folder, "<trial>")
        return _TEMPORARY.sub("tmp…", _ADDRESS.sub("0x…", text))

    def _keep_refusal(self, result):
        kind, error, _ = result.excinfo or (None, None, None)
        if kind is None:
            return
        if issubclass(kind, self._pytest.UsageError):
            # argparse puts its usage before the sentence that matters.
            self._refused = " ".join(str(error).rpartition("error: ")[2].split())
        elif issubclass(kind, Exception):
            cause = getattr(error, "cause", None)
            self._error = self._error or Failed(cause or error, str(error))

    def _own_crash_file(self):
        import faulthandler

        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        faulthandler.enable(file=os.open(self._folder + "/fault.txt", flags, 0o644), all_threads=True)


def summary(reports):
    """(outcome, name of the text, text) of a test, given the reports of its phases in the order in which they came."""
    outcome, name, text = "error", FAILURE, ""
    for report in reports:
        if report.outcome == "rerun":
            outcome, name, text = "error", FAILURE, ""
        elif report.failed:
            return "failed" if report.when == "call" else "error", FAILURE, report.longreprtext
        elif report.skipped:
            if hasattr(report, "wasxfail"):
                outcome, name, text = "xfailed", REASON, str(report.wasxfail)
            else:
                outcome, name, text = "skipped", REASON, _reason(report)
        elif report.when == "call":
            outcome = "xpassed" if hasattr(report, "wasxfail") else "passed"
    return outcome, name, text


def _reason(report):
    """Why a test was skipped."""
    place = report.longrepr
    return str(place[2] if isinstance(place, tuple) and len(place) == 3 else place).replace("Skipped: ", "", 1)


def _decorated(pytest):
    """`Plugin`, its methods marked for pytest, which is imported only now."""
    wrapper = pytest.hookimpl(hookwrapper=True, tryfirst=True)
    for method in (Plugin.pytest_cmdline_parse, Plugin.pytest_load_initial_conftests, Plugin.pytest_cmdline_main):
        wrapper(method)
    pytest.hookimpl(tryfirst=True)(Plugin.pytest_collection_modifyitems)
    # A subclass, since a fixture is another object than the function it was made of.
    fixtures = {name: pytest.fixture(getattr(Plugin, name)) for name in ("record", "reprocheck")}
    return type("Plugin", (Plugin,), fixtures)
