"""Times Python peers. Reads a question as JSON, writes the answers as JSON.

Times are the CPU time of this process, medians; token counts are known beforehand. A peer that
cannot be imported or fails answers with its error.
"""

import json
import os
import statistics
import sys
import time

os.environ.setdefault("HAYSTACK_TELEMETRY_ENABLED", "False")
ROUNDS = 7


def timed(work):
    before = time.process_time()
    result = work()
    return time.process_time() - before, result


def median(work):
    work()
    return statistics.median(timed(work)[0] for _ in range(ROUNDS))


def knapsack(question):
    from ortools.algorithms.python import knapsack_solver

    kind = knapsack_solver.SolverType.KNAPSACK_MULTIDIMENSION_BRANCH_AND_BOUND_SOLVER

    def solve(instance):
        solver = knapsack_solver.KnapsackSolver(kind, "bench")
        solver.set_time_limit(float(question["limit"]))
        solver.init(instance["values"], [instance["weights"]], [instance["capacity"]])
        value = solver.solve()
        return value, solver.is_solution_optimal()

    answers = {}
    for instance in question["knapsack"]:
        seconds, (value, finished) = timed(lambda: solve(instance))
        if finished and seconds < 1.0:
            seconds = median(lambda: solve(instance))
        answers[instance["name"]] = {"seconds": seconds, "value": value, "finished": finished}
    return answers


def texts(question):
    return [f"{number} ".ljust(length, "x") for number, (_, length) in enumerate(question["candidates"])]


def messages(question):
    from langchain_core.messages import HumanMessage

    return [
        HumanMessage(text, additional_kwargs={"tokens": tokens})
        for text, (tokens, _) in zip(texts(question), question["candidates"])
    ]


def trim_messages(question):
    from langchain_core.messages import BaseMessage, trim_messages

    def of_list(messages: list[BaseMessage]) -> int:
        return sum(message.additional_kwargs["tokens"] for message in messages)

    def of_one(message: BaseMessage) -> int:
        return message.additional_kwargs["tokens"]

    history = messages(question)

    def seconds(counter):
        return median(
            lambda: trim_messages(history, max_tokens=question["budget"], token_counter=counter, strategy="last")
        )

    return {"list": {"seconds": seconds(of_list)}, "one": {"seconds": seconds(of_one)}}


def long_context_reorder(question):
    from llama_index.core.postprocessor import LongContextReorder
    from llama_index.core.schema import NodeWithScore, TextNode

    nodes = [
        NodeWithScore(node=TextNode(text=text), score=number / len(question["candidates"]))
        for number, text in enumerate(texts(question))
    ]
    reorder = LongContextReorder()
    return {"seconds": median(lambda: reorder.postprocess_nodes(nodes))}


def lost_in_the_middle(question):
    from haystack import Document
    from haystack.components.rankers import LostInTheMiddleRanker

    documents = [Document(content=text) for text in texts(question)]
    ranker = LostInTheMiddleRanker()
    return {"seconds": median(lambda: ranker.run(documents=documents))}


def main():
    question = json.load(sys.stdin)
    answers = {}
    for work in (knapsack, trim_messages, long_context_reorder, lost_in_the_middle):
        try:
            answers[work.__name__] = work(question)
        except Exception as error:  # a peer that fails is an answer too
            answers[work.__name__] = {"error": f"{type(error).__name__}: {error}"}
    # Whatever a peer printed on the way is not the answer.
    sys.__stdout__.write(json.dumps(answers))


if __name__ == "__main__":
    answer_to, sys.stdout = sys.stdout, sys.stderr
    sys.__stdout__ = answer_to
    main()
