"""The time limit of a connection's waits."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from kseg.serve.deadline import Deadline


def run_with_deadline(work: Callable[[Deadline], Awaitable[None]]) -> None:
    async def run() -> None:
        deadline = Deadline()
        try:
            await work(deadline)
        finally:
            deadline.close()

    asyncio.run(run())


def endless() -> asyncio.Future[None]:
    return asyncio.get_running_loop().create_future()


async def some_turns_of_the_loop() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


def test_a_wait_ends_with_a_timeout_when_its_time_is_over() -> None:
    async def wait(deadline: Deadline) -> None:
        with deadline.within(0):
            await endless()

    with pytest.raises(TimeoutError):
        run_with_deadline(wait)


def test_a_short_limit_after_a_long_one_is_kept() -> None:
    async def wait(deadline: Deadline) -> None:
        with deadline.within(3600):
            pass
        with deadline.within(0):
            await endless()

    with pytest.raises(TimeoutError):
        run_with_deadline(wait)


def test_an_old_limit_does_not_end_a_later_wait() -> None:
    async def wait(deadline: Deadline) -> None:
        with deadline.within(0):
            pass
        with deadline.within(3600):
            await some_turns_of_the_loop()
        await some_turns_of_the_loop()

    run_with_deadline(wait)


def test_waits_can_end_with_a_timeout_again_and_again() -> None:
    async def wait(deadline: Deadline) -> None:
        for _ in range(3):
            with pytest.raises(TimeoutError), deadline.within(0):
                await endless()

    run_with_deadline(wait)


def test_a_cancelled_task_is_not_taken_for_a_timeout() -> None:
    async def wait(deadline: Deadline) -> None:
        task = asyncio.current_task()
        assert task is not None
        asyncio.get_running_loop().call_soon(task.cancel)
        with deadline.within(3600):
            await endless()

    with pytest.raises(asyncio.CancelledError):
        run_with_deadline(wait)


def test_a_cancelled_task_stays_cancelled_when_its_time_is_over_too() -> None:
    async def wait(deadline: Deadline) -> None:
        task = asyncio.current_task()
        assert task is not None
        with deadline.within(0):
            asyncio.get_running_loop().call_soon(task.cancel)
            await endless()

    with pytest.raises(asyncio.CancelledError):
        run_with_deadline(wait)
