"""A call finishes exactly once, whoever comes first."""

from kernelport.core.errors import Cancelled, QueueTimeout
from kernelport.core.request import Call, InferenceRequest, InferenceResponse, RequestedOutput, output_names

RESPONSE = InferenceResponse("m", "1", [])


def call() -> Call:
    return Call(InferenceRequest({}), received_ns=5)


def test_the_callback_hears_of_the_end_at_once_and_once() -> None:
    heard: list[Call] = []
    one = call()
    one.add_done_callback(heard.append)
    assert one.finish(RESPONSE, None) is True
    assert heard == [one]
    assert one.finish(None, QueueTimeout("late")) is False
    assert (one.response, one.error, heard) == (RESPONSE, None, [one])


def test_a_callback_that_comes_late_is_run_at_once() -> None:
    heard: list[Call] = []
    one = call()
    one.finish(RESPONSE, None)
    one.add_done_callback(heard.append)
    assert heard == [one]


def test_several_callbacks_are_run_in_their_order() -> None:
    heard: list[int] = []
    one = call()
    for number in range(3):
        one.add_done_callback(lambda _, number=number: heard.append(number))  # type: ignore[misc]
    one.finish(RESPONSE, None)
    assert heard == [0, 1, 2]


def test_a_cancelled_call_tells_the_queue_and_then_its_callback() -> None:
    heard: list[str] = []
    one = call()
    one.on_cancel = lambda _: heard.append("queue")
    one.add_done_callback(lambda _: heard.append("callback"))
    one.cancel()
    one.cancel()
    assert heard == ["queue", "callback"]
    assert one.is_cancelled
    assert isinstance(one.error, Cancelled)


def test_a_call_that_never_reached_a_queue_is_cancelled_all_the_same() -> None:
    one = call()
    one.cancel()
    assert isinstance(one.error, Cancelled)


def test_the_queue_may_settle_a_cancelled_call_itself() -> None:
    one = call()
    error = Cancelled("taken out of the queue")

    def take_out(cancelled: Call) -> None:
        cancelled.finish(None, error)

    one.on_cancel = take_out
    one.cancel()
    assert one.error is error


def test_a_finished_call_can_no_more_be_cancelled() -> None:
    one = call()
    one.finish(RESPONSE, None)
    one.cancel()
    assert not one.is_cancelled
    assert one.response is RESPONSE


def test_requested_outputs_are_named_or_all() -> None:
    assert output_names(None) is None
    assert output_names([]) == ()
    assert output_names([RequestedOutput("b"), RequestedOutput("a", binary=True)]) == ("b", "a")
