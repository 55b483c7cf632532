"""What goes wrong between spark-submit and a cluster: known causes by what Spark says of them, each with what to do."""

import re
from typing import NamedTuple


class Cause(NamedTuple):
    """A cause: what Spark's lines have in them, and what kseg says; {1} is the first group, {master} the master."""

    pattern: re.Pattern[str]
    says: str

    def line(self, said: re.Match[str], master: str) -> str:
        """What kseg says of a place where it was found."""
        return self.says.format(said[0], *said.groups(default=""), master=master)


def _cause(pattern: str, says: str) -> Cause:
    return Cause(re.compile(pattern, re.MULTILINE), says)


_PYTHON_HOW = "--ship-env sends this environment; PYSPARK_PYTHON names a Python that all machines have"
_K8S_CAUSE = r"KubernetesClientException.*\n(?:.*\n){0,60}?Caused by: java\.(?:io|net)\.\w*Exception: (.*)"

CAUSES = (
    _cause(
        r"either HADOOP_CONF_DIR or YARN_CONF_DIR must be set",
        "--master yarn needs Hadoop's configuration: set HADOOP_CONF_DIR to the directory with yarn-site.xml and"
        " core-site.xml",
    ),
    _cause(
        r"Master must either be yarn or start with|Could not parse Master URL|Invalid master URL",
        "{master} is no master: give spark://HOST:PORT, yarn, k8s://https://HOST:PORT or local[N]",
    ),
    _cause(
        r"Cluster deploy mode is currently not supported for python applications on standalone clusters",
        "a standalone cluster runs no driver in Python: leave out --deploy-mode cluster",
    ),
    _cause(
        r"JAVA_HOME is not set",
        "spark-submit finds no Java: set JAVA_HOME to Java 17 or later",
    ),
    _cause(
        r"All masters are unresponsive",
        "no master answers at {master}: see that it runs, and that its web page shows this address",
    ),
    _cause(
        r"Must specify the (?:driver|executor) container image",
        "Kubernetes needs an image with kseg: --conf spark.kubernetes.container.image=…; docs/how-to/spark.md has one",
    ),
    _cause(
        _K8S_CAUSE,
        "Kubernetes' API server at {master} can't be used: {1}; `kubectl cluster-info` prints its address",
    ),
    _cause(
        r"Call From \S+ to (\S+) failed on connection exception",
        "{1} doesn't answer, which Hadoop's configuration names: see that it runs, and that HADOOP_CONF_DIR is this"
        " cluster's",
    ),
    _cause(
        r"Required (?:executor|AM) memory.*is above the max threshold.*",
        "{0}",
    ),
    _cause(
        r'Cannot run program "([^"]+)".*(?:error=2|No such file)',
        f"executors can't run {{1}}: {_PYTHON_HOW}",
    ),
    _cause(
        r"^(?:\S*/)?(\S*python\S*): (?:No such file or directory|command not found|cannot execute)",
        f"the driver can't run {{1}}: {_PYTHON_HOW}",
    ),
    _cause(
        r"ModuleNotFoundError: No module named '(kseg|pyarrow)",
        f"the executors' Python has no {{1}}: {_PYTHON_HOW}",
    ),
    _cause(
        r"PYTHON_VERSION_MISMATCH.*",
        f"driver and executors run different versions of Python: {_PYTHON_HOW}",
    ),
    _cause(
        r"kseg\.errors\.OpenError: (.*[Nn]o such file or directory.*)",
        "an executor says: {1}; driver and executors must reach sources and destination under the same names",
    ),
    _cause(
        r"^kseg: (.*): is here, but not on the machine that reads it",
        "executors don't find {1}; driver and executors must reach sources and destination under the same names",
    ),
    _cause(
        r"Master removed our application: (\w+)",
        "the master gave the export up ({1}): executors end as soon as they are started; the workers' web pages have"
        " what they said",
    ),
    _cause(
        r"(ExecutorLostFailure .*)",
        "executors were lost: {1}",
    ),
    _cause(
        r"User application exited with (?:status )?(\d+)[\s\S]*?(application_\w+) finished with",
        "the driver on the cluster ended with status {1}; `yarn logs -applicationId {2}` prints what it said",
    ),
    _cause(
        r"(application_\w+) finished with (?:failed|killed) status|Application (application_\w+) is killed",
        "the driver on the cluster was ended; `yarn logs -applicationId {1}{2}` prints its log",
    ),
)
"""In this order: the first that is found is the cause, the others may follow from it."""

NOTES = (
    _cause(
        r"Initial job has not accepted any resources",
        "no executor has come yet: the cluster is busy, or no worker has the cores and the memory that are asked for"
        " (spark.executor.cores, spark.executor.memory)",
    ),
    _cause(
        r"Failed to connect to master (\S+)",
        "the master at {1} doesn't answer; Spark tries for a minute",
    ),
    _cause(
        r"Retrying connect to server: (?:\S+/)?([\w.-]+:\d+)",
        "{1} doesn't answer, which Hadoop's configuration names; Spark tries again",
    ),
)
"""What is said while Spark goes on."""

NO_RESOURCES = NOTES[0].pattern
_ENDS = (
    re.compile(r'^Exception in thread "main" [\w.$]+: (.*)', re.MULTILINE),
    re.compile(r"^Error: (.*)", re.MULTILINE),
)
"""How spark-submit ends when it fails itself, before a driver or without one."""
DRIVER_STATUS = re.compile(r"User application exited with (?:status )?(\d+)")
"""What a cluster says of a driver that ended by itself."""


def cause_in(said: str, master: str) -> str | None:
    """The cause of a failure, by all that Spark has said; None if no known one is found."""
    for cause in CAUSES:
        found = cause.pattern.search(said)
        if found is not None:
            return cause.line(found, master)
    return None


def end_in(said: str) -> str | None:
    """With which words spark-submit has failed itself; None if it ended as the driver did."""
    found = [match[1] for pattern in _ENDS for match in pattern.finditer(said)]
    return found[-1] if found else None
