"""The table of verbs: where each lives and what it says of itself, without importing it."""

from __future__ import annotations

from typing import Final, NamedTuple


class Verb(NamedTuple):
    """One verb of the command line.

    Parameters
    ----------
    target : str
        ``module:function``, imported only when the verb is used.
    summary : str
        First line of the function's docstring; a test keeps both equal.
    takes_command : bool
        Whether a foreign command line follows, which must not be mixed up with options of the verb.
    takes_study : bool
        Whether a study stands first, which has options of its own.
    """

    target: str
    summary: str
    takes_command: bool = False
    takes_study: bool = False


VERBS: Final[dict[str, Verb]] = {
    "run": Verb(
        "steelyard.cli.measuring.run:run", "Run a study and write its result folder.", takes_study=True
    ),
    "measure": Verb(
        "steelyard.cli.measuring.measure:measure",
        "Run one command and show what it used.",
        takes_command=True,
    ),
    "compare": Verb(
        "steelyard.cli.measuring.compare:compare",
        "Compare commands: which is slower, faster or equally fast, and how certain that is.",
    ),
    "bench": Verb(
        "steelyard.cli.measuring.bench:bench",
        "Compare the benchmarks of a suite between revisions, within a number of minutes.",
    ),
    "bisect": Verb(
        "steelyard.cli.measuring.bisect:bisect",
        "Find the commit that made a program slower or faster, and how probable that is.",
    ),
    "doctor": Verb(
        "steelyard.cli.measuring.doctor:doctor", "Show what this machine can do and what makes it noisy."
    ),
    "run-part": Verb(
        "steelyard.cli.measuring.run_part:run_part",
        "Run one part of a study that `steelyard run --on` placed on several hosts.",
    ),
    "fleet doctor": Verb(
        "steelyard.cli.measuring.fleet_doctor:fleet_doctor",
        "Show the hosts of a fleet side by side: which are fit, which differ, which measures otherwise.",
    ),
    "analyse": Verb("steelyard.cli.results.analyse:analyse", "Compute the findings of a result folder."),
    "report": Verb("steelyard.cli.results.report:report", "Render the findings of a result folder."),
    "figure": Verb(
        "steelyard.cli.results.figure:figure",
        "Write figures of a report for a paper, and the tables behind them.",
    ),
    "verify": Verb("steelyard.cli.packages.verify:verify", "Compute every finding again and compare."),
    "pack": Verb(
        "steelyard.cli.packages.pack:pack",
        "Pack a result folder into one archive that others can verify and run again.",
    ),
    "rerun": Verb(
        "steelyard.cli.packages.rerun:rerun",
        "Repeat the study of a package on this machine and compare both results.",
    ),
    "compare-results": Verb(
        "steelyard.cli.results.compare_results:compare_results",
        "Compare two results and list what changed.",
    ),
    "history": Verb("steelyard.cli.results.history:history", "Find where a history of results changes."),
    "peaks": Verb(
        "steelyard.cli.results.peaks:peaks",
        "Find how often calls take unusually long, when, and what coincides with it.",
    ),
    "fit": Verb("steelyard.cli.results.fit:fit", "Fit lines, power laws or pieces to two columns of a file."),
    "open": Verb(
        "steelyard.cli.catalogue.opening:open_result",
        "Import, analyse and report a file of any format, and show the page.",
    ),
    "results list": Verb(
        "steelyard.cli.catalogue.listing:list_results", "List the results of the catalogue."
    ),
    "results show": Verb(
        "steelyard.cli.catalogue.listing:show", "Show what the catalogue knows of a result."
    ),
    "results tag": Verb("steelyard.cli.catalogue.labelling:tag", "Tag a result, so that it is found again."),
    "results note": Verb(
        "steelyard.cli.catalogue.labelling:note", "Write a note on a result, or print the one it has."
    ),
    "results diff": Verb(
        "steelyard.cli.catalogue.listing:diff", "Compare two results of the catalogue and list what changed."
    ),
    "results open": Verb(
        "steelyard.cli.catalogue.opening:open_listed",
        "Show the report of a result; made first if it is missing.",
    ),
    "results rm": Verb(
        "steelyard.cli.catalogue.removal:remove",
        "Remove results: their folders, and what the catalogue knows of them.",
    ),
    "results scan": Verb(
        "steelyard.cli.catalogue.removal:scan", "Find result folders and make the catalogue from them."
    ),
    "plan": Verb("steelyard.cli.measuring.plan:plan", "Show what a study would run.", takes_study=True),
    "import": Verb(
        "steelyard.cli.results.importing:import_results",
        "Turn result files of other tools into a result folder.",
    ),
    "export": Verb(
        "steelyard.cli.results.exporting:export_results", "Write the measurements of a result folder as CSV."
    ),
    "export simgrid": Verb(
        "steelyard.cli.results.exporting_models:export_simgrid",
        "Write a cost model as a platform of SimGrid.",
    ),
    "export model": Verb(
        "steelyard.cli.results.exporting_models:export_model",
        "Write a cost model as JSON, or as a function in Python or Rust.",
    ),
    "predict": Verb(
        "steelyard.cli.results.predict:predict", "Predict how long messages of given sizes take."
    ),
    "simulate colocation": Verb(
        "steelyard.cli.measuring.simulate_colocation:simulate_colocation",
        "Simulate a service and best-effort jobs under scheduling policies.",
    ),
    "workload": Verb(
        "steelyard.cli.measuring.workload:workload",
        "Run a built-in workload program and pass on what it prints.",
    ),
    "background": Verb(
        "steelyard.cli.measuring.background:background",
        "Run a command best-effort: it yields wherever something else wants to run.",
        takes_command=True,
    ),
    "scheduler start": Verb(
        "steelyard.cli.measuring.scheduler:start",
        "Start the scheduling class, or a governor where the host has none.",
    ),
    "scheduler stop": Verb(
        "steelyard.cli.measuring.scheduler:stop",
        "Stop the scheduling class and the governor, and restore everything.",
    ),
    "scheduler status": Verb(
        "steelyard.cli.measuring.scheduler:status",
        "Show how well services are protected from best-effort commands, and what was counted.",
    ),
    "repository index": Verb(
        "steelyard.cli.packages.repository:index", "Write the index of a folder of packages."
    ),
    "repository list": Verb(
        "steelyard.cli.packages.repository:list_packages",
        "List the packages that a folder or a server offers.",
    ),
    "repository fetch": Verb(
        "steelyard.cli.packages.repository:fetch",
        "Fetch a package from a folder or a server and check its hash.",
    ),
    "serve": Verb(
        "steelyard.cli.results.serving:serve",
        "Show results as pages in a browser: list, read, follow live, compare.",
    ),
    "restore": Verb(
        "steelyard.cli.measuring.restore:restore", "Undo what a killed study left: machine settings, links."
    ),
}
