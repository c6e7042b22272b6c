"""The original's own beam search, whole sequences again at every step, and what it weighed at each.

A step keeps the `width` best of its candidates and drops the rest; `log_probs` holds the sums of the kept ones and of the
best dropped one, so that a reader sees how near a tie each choice was.
"""

from typing import Any

import torch

from failure import RecordError
from loading import Input


def search(model: torch.nn.Module, given: Input) -> dict[str, Any]:
    """Sequences (continuations alone), scores, and of every step sources, tokens and log_probs.

    scores are the original's: the sum of the log-probabilities over the number of generated tokens (length_penalty 1).
    """
    width, steps = given.beam_width, given.beam_steps
    prompt = len(given.tokens)
    taken: list[dict[str, Any]] = []
    weigh = model._get_top_k_continuations

    def weigh_and_keep(*args: Any, **kwargs: Any) -> Any:
        log_probs, sequences, sources = weigh(*args, **kwargs)
        column = kwargs["cur_len"]
        taken.append(
            {
                "sources": sources[0, :width, column - prompt].tolist(),
                "tokens": sequences[0, :width, column].tolist(),
                "log_probs": log_probs[0, : width + 1].tolist(),
            }
        )
        return log_probs, sequences, sources

    model.generation_config.eos_token_id = None
    model.generation_config.pad_token_id = 0
    model._get_top_k_continuations = weigh_and_keep
    try:
        output = model.generate(
            torch.tensor([given.tokens], dtype=torch.int64),
            attention_mask=torch.ones((1, prompt), dtype=torch.int64),
            num_beams=width,
            num_return_sequences=width,
            max_new_tokens=steps,
            length_penalty=1.0,
            early_stopping=False,
            do_sample=False,
            use_cache=False,
            output_scores=True,
            return_dict_in_generate=True,
        )
    finally:
        del model._get_top_k_continuations
    if len(taken) != steps or output.sequences.shape != (width, prompt + steps):
        raise RecordError(f"input {given.name}: the beam search took {len(taken)} steps, expected {steps}")
    return {
        "sequences": output.sequences[:, prompt:].tolist(),
        "scores": output.sequences_scores.tolist(),
        "steps": taken,
    }
