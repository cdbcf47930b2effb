"""What all displays share: arrays without a drawing, and classifiers in the place of predictions.

A display computes its arrays in `_computed`, from what `from_predictions` documents, and draws them
in `plot`.
"""

from __future__ import annotations

from typing import Any, ClassVar, Self

from numpy.typing import ArrayLike

from argmaxf.displays.drawing import positive_proba


class Display:
    """Arrays that know how to draw themselves."""

    _computed: ClassVar[Any]  # what says how the arrays come about
    from_predictions: ClassVar[Any]

    @classmethod
    def of(cls, *data: Any, **options: Any) -> Self:
        """Compute the arrays without drawing.

        Parameters
        ----------
        *data : array-like
            As for `from_predictions`.
        **options : object
            Options of `from_predictions`, but for those that say how to draw.

        Returns
        -------
        Display
            The display, with its arrays.
        """
        found: Self = cls._computed(*data, **options)
        return found


class ProbabilityDisplay(Display):
    """A display of probabilities, without labels."""

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, *, pos_label: Any = None, **options: Any
    ) -> Self:
        """Draw it for the rows of X, with a fitted classifier's probabilities.

        Parameters
        ----------
        estimator : estimator
            A fitted classifier.
        X : array-like or sparse matrix of shape (n, features)
            The rows.
        pos_label : scalar, optional
            The class that counts as positive; by default the last in sorted order.
        **options : object
            Further options of `from_predictions`.

        Returns
        -------
        Display
            The display, with what was drawn.
        """
        drawn: Self = cls.from_predictions(positive_proba(estimator, X, pos_label), **options)
        return drawn


class LabelledDisplay(Display):
    """A display of labelled scores, or of labelled probabilities."""

    _scores = staticmethod(positive_proba)  # what a classifier is asked for

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: ArrayLike, *, pos_label: Any = None, **options: Any
    ) -> Self:
        """Draw it for labelled rows, with what a fitted classifier says of them.

        Parameters
        ----------
        estimator : estimator
            A fitted classifier.
        X : array-like or sparse matrix of shape (n, features)
            The rows.
        y : array-like of shape (n,)
            Their true labels.
        pos_label : scalar, optional
            The class that counts as positive; by default the last in sorted order.
        **options : object
            Further options of `from_predictions`.

        Returns
        -------
        Display
            The display, with what was drawn.
        """
        scores = cls._scores(estimator, X, pos_label)
        drawn: Self = cls.from_predictions(y, scores, pos_label=pos_label, **options)
        return drawn
