"""What a model is made of, as far as its speed depends on it: weights, layers and KV cache."""

from dataclasses import dataclass

from fleetline.errors import ModelError


@dataclass(frozen=True, slots=True, kw_only=True)
class Architecture:
    """A transformer, dense or mixture of experts."""

    name: str
    layers: int
    hidden_size: int
    parameters: float
    """All weights. [values]"""
    active_parameters: float
    """Weights that one token multiplies. [values]"""
    attention_heads: int
    head_size: int
    vocabulary_size: int
    kv_values_per_token: float
    """Cached values per token of context in layers that keep all of it. [values/token]"""
    window_kv_values_per_token: float = 0.0
    """Cached values per token in sliding-window layers, all such layers together. [values/token]"""
    window_tokens: int = 0
    """Length of that window; 0 if every layer keeps its whole context. [tokens]"""
    latent_attention: bool = False
    """Multi-head latent attention (MLA): the cache is one latent, which tensor ranks replicate."""
    kv_heads: int = 1
    """Key/value heads: tensor parallelism beyond this number replicates the cache."""
    experts: int = 0
    experts_per_token: int = 0
    expert_parameters: float = 0.0
    """Weights of all routed experts of all layers. [values]"""
    max_context_tokens: int = 131_072

    def __post_init__(self) -> None:
        """Refuse what would make every formula meaningless."""
        if self.layers < 1 or self.parameters <= 0:
            raise ModelError(
                f"{self.name} must have layers and parameters, "
                f"got {self.layers} and {self.parameters:g}"
            )
