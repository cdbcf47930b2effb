"""What models say of rows they have not seen: the fits that takes, scores and predictions.

Rows to be rated are those of a test set, or those that `cv` holds out. One set of held-out scores
of the classifier serves all methods that wrap it; a method with a model of its own predicts the
same rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils import check_array
from sklearn.utils.parallel import Parallel, delayed

from argmaxf._base.arrays import Bools, Floats, Ints
from argmaxf._base.validation import ones_unless
from argmaxf.comparison.fits import LINEAR, Fit, read_predictions, read_scores
from argmaxf.comparison.methods import Method
from argmaxf.comparison.recipe import Recipe
from argmaxf.empirical.guarantees import refuse_groups
from argmaxf.estimators.calibration import settled
from argmaxf.estimators.deployed import Deployed
from argmaxf.estimators.folds import deal, folds, held_out_once, is_share, lonely
from argmaxf.estimators.labels import Labels
from argmaxf.estimators.scores import LabelScorer, scores_to_cut, weight_parameter
from argmaxf.estimators.shift import Familiar

FEWEST_PARTS = 5  # into which held-out rows are dealt where `cv` holds out one set only


@dataclass
class Trial:
    """The rows of a comparison, and what the models say of them as the fits are run.

    `scores` has a row for each training row and a block of columns for each kind of score in
    `kinds`: probabilities, and scores to be cut.
    """

    X: Any
    target: NDArray[Any]
    labels: Labels
    weight: Floats | None
    estimator: Any
    recipe: Recipe
    methods: Sequence[Method]
    fit_params: dict[str, Any]  # what the classifier's fit gets of the weights
    X_test: Any = None
    target_test: NDArray[Any] | None = None
    needs_model: bool = False  # whether the classifier that predicts is wanted
    notes: list[str] = field(default_factory=list)
    groups: Any = None  # of rows that are held out together
    stream: bool = False  # whether each row is decided alone, as it comes
    model: LabelScorer | None = None  # fitted on all rows, or on those not held out by a share

    def __post_init__(self) -> None:
        columns = self.labels.columns(self.target)
        self.deployed = Deployed.of(self.recipe.deploy_rate, self.labels, columns, self.weight)
        self.kinds = scores_to_cut(self.estimator)
        recipe = self.recipe
        if self.groups is not None and recipe.confidence_level is not None:
            refuse_groups()
        self.splits = folds(recipe.cv, columns, self.target, recipe.random_state, self.groups)
        self.held_out = held_out_once(self.splits, len(columns))
        self.scores = np.full((len(columns), len(self.kinds) * columns.shape[1]), np.nan)
        self.test_scores: Floats | None = None
        self.methods = self._taking_part()
        self.blended = {key for method in self.methods for key in method.members}
        shape = (len(self.rated_target), columns.shape[1])
        own = [m.name for m in self.methods if m.rests_on == "rows"]
        self.own = {name: np.zeros(shape, dtype=bool) for name in own}
        self.own_scores = {name: np.full(shape, np.nan) for name in own}
        self.models: list[LabelScorer] = []  # of each fold
        self.linear_models: list[LabelScorer] = []  # of each fold, where they are blended
        self.linear_scores = np.full(columns.shape, np.nan)

    @property
    def is_test(self) -> bool:
        """Whether rows of a test set are rated, and not those held out."""
        return self.target_test is not None

    @cached_property
    def rated_target(self) -> NDArray[Any]:
        """The target of the rows to be rated."""
        return self.target if self.target_test is None else self.target_test

    @cached_property
    def truth(self) -> Bools:
        """The labels of the rows to be rated, one column for each."""
        return self.labels.columns(self.rated_target)

    @property
    def rated_weight(self) -> Floats | None:
        """What each training row counts where it will predict: at another rate, if one is given."""
        if self.recipe.deploy_rate is None or self.deployed.by_batch:
            return self.weight
        columns = self.labels.columns(self.target)
        moved = self.deployed.weights(columns, self.deployed.rates(self.scores))[:, 0]
        return moved * ones_unless(self.weight, len(moved))

    @property
    def proba(self) -> Floats | None:
        """The classifier's probabilities for the rows to be rated, where it has any."""
        scores = self.scores if self.test_scores is None else self.test_scores
        has_any = self.kinds[0] == "predict_proba"
        return scores[:, : self.labels.n_columns] if has_any else None

    def run(self, track: Callable[[list[Fit]], Iterable[Fit]] = iter) -> None:
        """Run the fits; `track` goes through them, and may show how far they are."""
        self._check_classes()
        fits = [*self._classifier_fits(), *self._own_fits()]
        jobs = Parallel(n_jobs=self.recipe.n_jobs, return_as="generator")
        models = jobs(delayed(fit.run)() for fit in fits)
        for fit, model in zip(track(fits), models, strict=True):
            self._take(fit, model)

    def _check_classes(self) -> None:
        """Refuse a class that is in one row: no method can learn it while that row is held out."""
        rows = self.labels.columns(self.target).sum(axis=0)
        if self.labels.kind == "multiclass" and rows.min() < 2:
            lonely = self.labels.classes[np.argmin(rows)]
            raise ValueError(
                "methods are compared on held-out rows, for which every class needs two rows, got "
                f"{rows.min()} of class {str(lonely)!r}"
            )

    @cached_property
    def table(self) -> Floats:
        """What methods learn from: the classifier's scores, and the linear model's if blended.

        To be asked for once all fits are run.
        """
        return np.hstack([self.scores, self.linear_scores]) if self.blended else self.scores

    def method(self, name: str) -> Method:
        """Return the method of a name."""
        return next(method for method in self.methods if method.name == name)

    def method_of(self, key: str) -> Method:
        """Return the method of a key."""
        return next(method for method in self.methods if method.key == key)

    @property
    def familiar(self) -> Familiar:
        """The models of the folds, and what they say of the rows they have not seen."""
        return Familiar(self.models, self.scores[self.held_out, : self.labels.n_columns])

    def parts(self) -> list[tuple[Ints, Ints]]:
        """Return the held-out rows in parts, each with the rest, from which methods learn."""
        parts = [fold for _, fold in self.splits]
        if len(parts) == 1:
            held_out, columns = self.held_out, self.labels.columns(self.target)
            part = deal(columns[held_out], FEWEST_PARTS, self.recipe.random_state)
            parts = [held_out[part == i] for i in range(FEWEST_PARTS)]
        return [(np.setdiff1d(self.held_out, part), part) for part in parts]

    def _taking_part(self) -> list[Method]:
        """Return the methods that can be tried, with all that they blend; there must be one."""
        found = [m for m in self.methods if self._takes_part(m)]
        keys = {m.key for m in found}
        able = [m for m in found if keys.issuperset(m.members)]
        if not able:
            names = ", ".join(repr(m.key) for m in self.methods)
            sure = self.recipe.confidence_level is not None
            what = f"keep a promise of {self.recipe.constraints}" if sure else "take part"
            raise ValueError(f"no method can {what} here, got {names}")
        return able

    def _takes_part(self, method: Method) -> bool:
        """Whether a method can be tried on this classifier and these rows; if not, say why."""
        if self.recipe.confidence_level is not None and not self._promises(method):
            return False
        if self.deployed.by_batch and not method.follows:
            return False
        if method.rests_on == "probabilities" and self.kinds[0] != "predict_proba":
            return method.key != "uncalibrated" and not settled(self.estimator)
        if isinstance(self.estimator, FrozenEstimator) and method.rests_on == "rows":
            return method.complete
        if method.members and self._lonely():
            return False
        if not method.linear:
            return True
        problem = _problem_with_numbers(self.estimator, self.X, self.target)
        if problem:
            self.notes.append(f"{method.name} was left out, it needs plain numbers: {problem}")
        return not problem

    def _promises(self, method: Method) -> bool:
        """Whether a method can promise: expected F does so for a batch, and a stream has none."""
        if self.stream and method.promises and method.rests_on == "probabilities":
            self.notes.append(
                f"{method.name} was left out: it promises for a batch, and rows come one at a time"
            )
            return False
        return method.promises

    def _lonely(self) -> bool:
        """Whether for some part no label has two positives and two others in the rest."""
        columns = self.labels.columns(self.target)
        return any(bool(lonely(columns[rest]).all()) for rest, _ in self.parts())

    def _classifier_fits(self) -> Iterator[Fit]:
        scorer = LabelScorer(self.estimator, self.labels, self.kinds[0])
        scorer.passing(self.fit_params)
        name = type(self.estimator[-1] if isinstance(self.estimator, Pipeline) else self.estimator)
        common = (self.X, self.target, self.fit_params, partial(read_scores, self.kinds))
        if isinstance(self.estimator, FrozenEstimator):  # every row is new to it
            splits = [(self.held_out, self.held_out)]
        else:
            splits = self.splits
        for i, split in enumerate(splits, start=1):
            yield Fit(None, f"{name.__name__}, fold {i} of {len(splits)}", scorer, *common, split)
        if (self.needs_model and not is_share(self.recipe.cv)) or self.is_test:
            label = f"{name.__name__}, all rows"
            yield Fit(None, label, scorer, *common, X_test=self.X_test)

    def _own_fits(self) -> Iterator[Fit]:
        read = partial(read_predictions, self.stream)
        for method in self.methods:
            if method.rests_on != "rows":
                continue
            model = method.make(self.estimator, self.recipe)
            common = (model, self.X, self.target, self.params_for(model), read)
            if self.is_test:
                yield Fit(method, f"{method.name}, all rows", *common, X_test=self.X_test)
            if self.is_test and method.key not in self.blended:
                continue
            for i, split in enumerate(self.splits, start=1):
                yield Fit(method, f"{method.name}, fold {i} of {len(self.splits)}", *common, split)

    def params_for(self, classifier: Any) -> dict[str, Any]:
        """Return what the `fit` of a method with a model of its own gets of the weights."""
        name, weight = weight_parameter(classifier), self.rated_weight
        return {} if weight is None or name is None else {name: weight}

    def _take(self, fit: Fit, model: Any) -> None:
        """Keep what was read from one model."""
        rows: Any = slice(None) if fit.split is None else fit.split[1]
        if fit.method is not None and fit.method.key in self.blended and fit.split is not None:
            self._take_linear(rows, model)
        if fit.method is not None and self.is_test and fit.split is not None:
            pass  # the rows to be rated are others
        elif fit.method is not None:
            predicted, scores = model.read_
            self.own[fit.method.name][rows] = self.labels.columns(predicted)
            if scores is not None:
                self.own_scores[fit.method.name][rows] = self.labels.margins(scores)
        elif fit.split is None:
            self.model, self.test_scores = model, model.read_
        else:
            self.scores[rows] = model.read_
            self.models.append(model)
            if is_share(self.recipe.cv):  # the model that predicts did not see the rows held out
                self.model = model
        model.read_ = None

    def _take_linear(self, rows: Any, model: Any) -> None:
        """Keep a linear model that is blended, and its scores."""
        self.linear_scores[rows] = self.labels.margins(model.read_[1])
        scorer = LabelScorer(model, self.labels, *LINEAR)
        scorer.models_ = [model]
        self.linear_models.append(scorer)


def nothing_to_tell(labels: Labels, target: NDArray[Any], weight: Floats | None) -> bool:
    """Whether no label has both positives and negatives among the rows that count."""
    counted = labels.columns(target if weight is None else target[weight > 0])
    return bool(np.all(counted == counted[0]))


def _problem_with_numbers(estimator: Any, X: Any, target: Any) -> str:
    """Return why X, as the classifier of a pipeline gets it, is no table of plain numbers."""
    if isinstance(estimator, Pipeline) and len(estimator) > 1:
        X = clone(estimator[:-1]).fit_transform(X, target)
    try:
        check_array(X, accept_sparse="csr", dtype=np.float64)
    except (TypeError, ValueError) as error:
        return str(error).splitlines()[0]
    return ""
