"""Every metric that the exporter tells. Base units; a ratio lies between 0 and 1, a change between -1 and 1.

Labels are few and bounded: names of the suite's author (suite, model, harness, variant), the two queues, and closed
sets of this code (outcome, kind). Never a trial, a case or a worker; the names of a run and of a schedule stand in info
metrics of their own.
"""

from evalfarm.exporter.families import Metric

NIGHT = ("suite", "queue")
ARM = ("suite", "queue", "model", "harness", "variant")
OTHER = "(other)"
"""In place of the model, harness and variant of arms beyond the bound."""


def _gauge(name: str, told: str, *labels: str) -> Metric:
    return Metric(f"evalfarm_{name}", "gauge", told, labels)


def _counter(name: str, told: str, *labels: str) -> Metric:
    return Metric(f"evalfarm_{name}_total", "counter", told, labels)


def _with_interval(name: str, told: str, *labels: str) -> tuple[Metric, Metric, Metric]:
    low = _gauge(f"{name}_lower", f"{told} Lower end of the 95 % interval.", *labels)
    return _gauge(name, told, *labels), low, _gauge(f"{name}_upper", f"{told} Upper end of the 95 % interval.", *labels)


# ---- the last finished run of a suite in a queue

PASS_RATIO = _with_interval("pass_ratio", "Pass rate of the last finished run.", *ARM)
DISAGREEMENT = _with_interval(
    "disagreement_ratio", "Chance that two repeats of a case disagree, in the last finished run.", *ARM
)
FLIP_RATIO = _with_interval("flip_ratio", "Share of cases that both passed and failed in the last finished run.", *ARM)
CASES = _gauge("cases", "Cases with a decided trial in the last finished run: what the intervals rest on.", *ARM)
LATENCY_P50 = _gauge("latency_p50_seconds", "Median seconds of a trial in the last finished run.", *ARM)
LATENCY_P95 = _gauge("latency_p95_seconds", "95 % quantile of a trial's seconds in the last finished run.", *ARM)
RUN_TRIALS = _gauge("run_trials", "Trials of the last finished run; the outcomes add up to the plan.", *ARM, "outcome")
RUN_COST = _gauge("run_cost_dollars", "US dollars of every attempt of the last finished run.", *ARM)
LAST_RUN = _gauge("last_run_timestamp_seconds", "When the newest run started, finished or not.", *NIGHT)
LAST_FINISHED = _gauge(
    "last_finished_run_timestamp_seconds", "When the newest run that is finished by now started.", *NIGHT
)
SCHEDULE_DUE = _gauge(
    "schedule_due_timestamp_seconds",
    "When the first night was due that is owed, or the next one is; of a suite's schedules the one furthest behind.",
    *NIGHT,
)
SCHEDULE_DUE_INFO = _gauge("schedule_due_info", "1 for the name of that schedule.", *NIGHT, "schedule")
LAST_RUN_INFO = _gauge("last_run_info", "1 for the name of the newest finished run.", *NIGHT, "run")

# ---- the last verdict of a gate, and the judges

GATE_VERDICT = _gauge("gate_verdict", "1 for what the last gate said of an arm, 0 for the others.", *ARM, "outcome")
GATE_CHANGE = _with_interval(
    "gate_change_ratio", "Pass rate against the baseline's, by the last gate, for the same cases.", *ARM
)
GATE_LATENCY = _with_interval(
    "gate_latency_factor", "Mean seconds of a question as a multiple of the baseline's, by the last gate.", *ARM
)
GATE_LATENCY_RISEN = _gauge(
    "gate_latency_risen", "1 where the last gate found the latency risen, by size and by test.", *ARM
)
GATE_TIME = _gauge("gate_timestamp_seconds", "When a gate last judged a run.", *NIGHT)
JUDGE_CALIBRATED = _gauge(
    "judge_calibrated",
    "1 where the judge of the last finished run was held against held-out labels, as it is, without a fault.",
    "suite",
    "model",
)
JUDGE_AGREEMENT = _gauge(
    "judge_agreement_ratio", "Share of labels on which judge and people agree, by its calibration.", "suite", "model"
)
JUDGE_FALSE_ACCEPT = _with_interval(
    "judge_false_accept_ratio", "Wrong answers that the judge passes, by its calibration.", "suite", "model"
)

# ---- what it took, over every run that is kept

TRIALS = _counter("trials", "Trials closed, by the ledger's verdict.", *ARM, "outcome")
STARTED = _counter("attempts_started", "Attempts begun.", *NIGHT)
ATTEMPTS = _counter(
    "attempts", "Attempts by how they ended; a lost one may come back and end once more.", *NIGHT, "outcome"
)
DUPLICATES = _counter("duplicate_executions", "Attempts that ran beside the one that counts.", *NIGHT)
REDISPATCHED = _counter("redispatched", "Messages that nobody claimed and that were sent again.", *NIGHT)
INFRA_FAILURES = _counter("infra_failures", "Attempts that infrastructure ended, by what broke.", *ARM, "kind")
COST = _counter("cost_dollars", "US dollars of every attempt whose price is known.", *ARM)
TOKENS = _counter("tokens", "Tokens of finished runs; each token is of one kind.", *ARM, "kind")

# ---- what goes on

QUEUE_DEPTH = _gauge("queue_depth", "Messages that wait for a worker.", "queue")
WORKERS = _gauge("workers", "Workers whose last beat still holds.")
SLOTS = _gauge("slots", "Trials that these workers run at a time.")
OPEN_RUNS = _gauge("open_runs", "Runs that are not sealed.", *NIGHT)
UNTENDED = _gauge("untended_runs", "Runs of the last seven days that are neither sealed nor known to Redis.")
WAITING = _gauge("trials_waiting", "Trials of open runs that are yet to be handed out.", *NIGHT)
IN_FLIGHT = _gauge("trials_in_flight", "Trials of open runs that are handed out or at work.", *NIGHT)
PROGRESS = _gauge(
    "run_progress_timestamp_seconds", "When a trial of an open run last closed; of several runs the oldest.", *NIGHT
)
BUDGET = _gauge("budget_dollars", "Budgets of open runs.", *NIGHT)
BUDGET_LEFT = _gauge("budget_left_dollars", "What is neither spent nor set aside of these budgets.", *NIGHT)
BUDGET_PROJECTED = _gauge(
    "budget_projected_dollars",
    "What the runs with a budget will have cost at the price of their closed trials.",
    *NIGHT,
)
MODEL_IN_FLIGHT = _gauge("model_in_flight", "Trials of a model at work, under its cap.", "model")
MODEL_LIMIT = _gauge("model_concurrency_limit", "Trials of a model at a time, as configured.", "model")
MODEL_CAP = _gauge("model_concurrency_cap", "The same as it holds now: a 429 lowers it.", "model")
MODEL_PAUSED = _gauge("model_paused_seconds", "Seconds for which nobody asks for the model.", "model")
REDIS_USED = _gauge("redis_memory_used_bytes", "Memory that Redis uses.")
REDIS_MOST = _gauge("redis_memory_limit_bytes", "Memory that Redis may use; the machine's where none is configured.")

# ---- the exporter itself

SOURCE_UP = _gauge("exporter_source_up", "1 where the last look at a source succeeded.", "kind")
SOURCE_TIME = _gauge("exporter_source_timestamp_seconds", "When a source was last read with success.", "kind")
ARMS_LEFT_OUT = _gauge("exporter_arms_left_out", f"Arms beyond the bound, told together as {OTHER}.")
BUILD = _gauge("build_info", "1 for the version of evalfarm.", "version")
