"""What a configuration says about a tensor, laid over what the model declares. Runs on: anywhere (pure)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches

from ..config.tensor import InputConfig, TensorConfig
from ..core.errors import LoadError
from ..core.tensor import Shape, TensorSpec


@dataclass(slots=True, frozen=True)
class Pair:
    """One tensor: the model's own declaration, and the configuration's entry if there is one."""

    role: str  # input or output
    model: TensorSpec
    written: TensorConfig | None

    @property
    def axis(self) -> int | None:
        """Axis along which it would be joined; None when the configuration says that it is not batched."""
        return 0 if self.written is None else self.written.batch_axis

    @property
    def text(self) -> str:
        """`input 'X'`, for messages."""
        return f"{self.role} {self.model.name!r}"

    @property
    def view(self) -> Shape | None:
        """The configured dims as the framework sees them (after `reshape`), or None."""
        if self.written is None:
            return None
        return self.written.dims if self.written.reshape is None else self.written.reshape.shape


def pair_up(role: str, model: Sequence[TensorSpec], written: Sequence[TensorConfig], where: str) -> list[Pair]:
    """Configured tensors first, in their order, then the model's others; raises LoadError for bad names, types."""
    by_name = {one.name: one for one in model}
    pairs = []
    for entry in written:
        declared = by_name.get(entry.name)
        if declared is None:
            close = get_close_matches(entry.name, list(by_name), n=1)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            have = ", ".join(one.describe() for one in model) or "none"
            raise LoadError(
                f"{where}: the configuration names {role} {entry.name!r}; the model's {role}s are {have}{hint}"
            )
        pair = Pair(role, declared, entry)
        _check_type(pair, where)
        pairs.append(pair)
    listed = {entry.name for entry in written}
    return pairs + [Pair(role, one, None) for one in model if one.name not in listed]


def _check_type(pair: Pair, where: str) -> None:
    written, declared = pair.written, pair.model
    if written is None:
        return
    if written.data_type not in ("", declared.datatype.config_name):
        raise LoadError(
            f"{where}: {pair.text}: the model has {declared.datatype.config_name}, the configuration says "
            f"{written.data_type}; write data_type: {declared.datatype.config_name}"
        )
    if isinstance(written, InputConfig) and written.optional and not declared.optional:
        raise LoadError(
            f"{where}: {pair.text}: the configuration says optional, but the model cannot run without it; "
            "remove optional: true"
        )


def says_batched(pair: Pair, where: str) -> bool | None:
    """Whether the configured dims leave a batch dimension out; None when they do not tell."""
    view, shape = pair.view, pair.model.shape
    if view is None or shape is None or pair.axis is None:
        return None
    if len(view) in (len(shape) - 1, len(shape)):
        return len(view) < len(shape)
    raise LoadError(
        f"{where}: {pair.text}: the model has {_dims(shape)}, the configuration says dims {_dims(view)}; "
        f"write dims: {_dims(shape)}" + (f", or dims: {_dims(shape[1:])} to batch along the first one" if shape else "")
    )


def why_not_batchable(pair: Pair) -> str:
    """Why requests cannot be joined along this tensor's batch axis, or an empty text."""
    axis, shape = pair.axis, pair.model.shape
    if axis is None:
        return ""
    if shape is None:
        return f"the rank of {pair.text} is not known"
    if not shape:
        return f"{pair.text} is a scalar"
    if len(shape) <= axis:
        return f"{pair.text} has shape {_dims(shape)}, so there is no dimension {axis}"
    if shape[axis] != -1:
        return f"dimension {axis} of {pair.text} is fixed at {shape[axis]}"
    return ""


def merge(pair: Pair, max_batch_size: int, where: str) -> TensorSpec:
    """The tensor as clients see it; raises LoadError when configuration and model contradict each other."""
    axis = pair.axis if max_batch_size else None
    _check_batch_dimension(pair, axis, max_batch_size, where)
    written, view = pair.written, pair.view
    if written is None or written.dims is None or view is None:
        if written is not None and written.reshape is not None:
            raise LoadError(f"{where}: {pair.text}: reshape needs dims beside it")
        return replace(pair.model, shape=_freed(pair.model.shape, axis), batch_axis=axis)
    _check_dims(pair, view, axis, max_batch_size, where)
    shape = _with_batch(written.dims, axis)
    reshape = None if written.reshape is None else written.reshape.shape
    symbols = _still_free(pair.model.symbols, shape) if reshape is None else ()
    return replace(pair.model, shape=shape, batch_axis=axis, reshape=reshape, symbols=symbols)


def _still_free(symbols: tuple[str, ...], shape: Shape) -> tuple[str, ...]:
    """The artifact's names of the dimensions that the configuration leaves free."""
    if len(symbols) != len(shape):
        return ()
    return tuple(symbol if dim == -1 else "" for symbol, dim in zip(symbols, shape, strict=True))


def _check_batch_dimension(pair: Pair, axis: int | None, max_batch_size: int, where: str) -> None:
    shape = pair.model.shape
    if axis is None or shape is None or _fixes_off_by_one(pair, shape):
        return
    if axis < len(shape) and shape[axis] in ((-1, 1) if max_batch_size == 1 else (-1,)):
        return
    text = f"{where}: {pair.text}: max_batch_size is {max_batch_size}, but "
    if axis >= len(shape):
        raise LoadError(
            f"{text}the model has {_dims(shape)}, without a dimension {axis} to batch along; set max_batch_size: 0, "
            f"or the right batch_axis for this {pair.role} (null if it has none)"
        )
    sizes = "0 or 1" if shape[axis] == 1 else "0"
    raise LoadError(
        f"{text}model dim {axis} is fixed at {shape[axis]}; set max_batch_size: {sizes} "
        "(or re-export the model with a dynamic batch)"
    )


def _fixes_off_by_one(pair: Pair, shape: Shape) -> bool:
    """Dims of the wrong rank are the better thing to complain about."""
    return pair.view is not None and len(pair.view) + 1 != len(shape)


def _check_dims(pair: Pair, view: Shape, axis: int | None, max_batch_size: int, where: str) -> None:
    shape = pair.model.shape
    if axis is not None and axis > len(view):
        raise LoadError(f"{where}: {pair.text}: batch_axis {axis} is beyond dims {_dims(view)}")
    if shape is None:
        return
    full = _with_batch(view, axis)
    if len(full) != len(shape):
        raise LoadError(f"{where}: {pair.text}: {_rank_advice(view, full, shape, axis, max_batch_size)}")
    batch_free = [(asked, have) for at, (asked, have) in enumerate(zip(full, shape, strict=True)) if at != axis]
    is_wrong = any(
        have not in (-1, asked) and not (asked == -1 and pair.role == "output") for asked, have in batch_free
    )
    if is_wrong:
        corrected = [asked if have == -1 else have for asked, have in batch_free]
        key = "reshape.shape" if pair.written is not None and pair.written.reshape is not None else "dims"
        raise LoadError(
            f"{where}: {pair.text}: the model has {_dims(shape)}, the configuration says {key} {_dims(view)}"
            f"{_plus_batch(axis)}; write {key}: {_dims(corrected)}"
        )


def _rank_advice(view: Shape, full: Shape, shape: Shape, axis: int | None, max_batch_size: int) -> str:
    if axis is not None:
        fixed = tuple(dim for at, dim in enumerate(shape) if at != axis)
        return (
            f"dims {_dims(view)} has rank {len(view)} and max_batch_size > 0 adds one: rank {len(full)}, "
            f"but the model has {_dims(shape)}, rank {len(shape)}; did you mean dims: {_dims(fixed)}?"
        )
    advice = f"did you mean dims: {_dims(shape)}?"
    if max_batch_size == 0 and len(view) + 1 == len(shape) and shape[0] == -1:
        advice = f"did you mean dims: {_dims((-1, *view))}, or a max_batch_size above 0?"
    return f"dims {_dims(view)} has rank {len(view)}, but the model has {_dims(shape)}, rank {len(shape)}; {advice}"


def _freed(shape: Shape | None, axis: int | None) -> Shape | None:
    """A batch dimension is shown as free even where the model fixes it at the one row that max_batch_size allows."""
    return shape if shape is None or axis is None else (*shape[:axis], -1, *shape[axis + 1 :])


def _with_batch(dims: Shape, axis: int | None) -> Shape:
    return dims if axis is None else (*dims[:axis], -1, *dims[axis:])


def _plus_batch(axis: int | None) -> str:
    return "" if axis is None else " (batch dimension excluded)"


def _dims(shape: Sequence[int]) -> str:
    return "[ " + ", ".join(map(str, shape)) + " ]" if shape else "[ ]"
