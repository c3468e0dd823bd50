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
    tied_embeddings: bool = False
    """Whether the input embedding is the output projection, stored once."""
    max_context_tokens: int = 131_072

    @property
    def embedding_parameters(self) -> float:
        """Input embedding: a table that is looked up, neither read nor multiplied. [values]"""
        return 0.0 if self.tied_embeddings else float(self.vocabulary_size * self.hidden_size)

    @property
    def shared_parameters(self) -> float:
        """Weights that every step reads: all but the routed experts and the lookup. [values]"""
        return max(0.0, self.parameters - self.expert_parameters - self.embedding_parameters)

    @property
    def all_kv_values_per_token(self) -> float:
        """Cached values per token in all layers. [values/token]"""
        return self.kv_values_per_token + self.window_kv_values_per_token

    def __post_init__(self) -> None:
        """Refuse what would make every formula meaningless."""
        if self.layers < 1 or self.parameters <= 0:
            raise ModelError(
                f"{self.name} must have layers and parameters, "
                f"got {self.layers} and {self.parameters:g}"
            )
