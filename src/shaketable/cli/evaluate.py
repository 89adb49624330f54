"""`shaketable evaluate`: effectiveness, variance and risk of run files or of a table of scores."""

from __future__ import annotations

from shaketable.cli.options.data import QrelsFile, Seed
from shaketable.cli.options.output import TableFlags
from shaketable.cli.options.tasks import Alphas, Baselines, Correction, Measures, Runs, ScoresFile, SignificanceTest


def evaluate(
    *,
    qrels: QrelsFile = None,
    run: Runs = None,
    scores: ScoresFile = None,
    measure: Measures = None,
    baseline: Baselines = None,
    alpha: Alphas = None,
    significance_test: SignificanceTest = "t_test",
    correction: Correction = "",
    tables: TableFlags,
    seed: Seed = 0,
) -> None:
    """Evaluate run files or a table of scores, without a ranker: effectiveness, variance and risk."""
    import shaketable as st
    from shaketable.cli.console import write_evaluation

    done = st.evaluate(
        qrels,
        run or (),
        scores=scores,
        measures=measure or (),
        baselines=baseline or (),
        alphas=alpha or (),
        significance_test=significance_test,
        correction=correction,
        seed=seed,
    )
    write_evaluation(done, tables)
