"""The GPT of examples/train_gpt in PyTorch, eager, on one thread, with the default sizes of the
program. A step consists of forward, backward, the norm of all gradients and AdamW.
"""

CHARACTERS, BATCH, CONTEXT, WIDTH, HEADS, LAYERS = 80, 16, 64, 64, 4, 2


def make_step(rank=0, ranks=1, wrap=lambda model: model):
    """Returns a function that makes a step on this rank's part of the batch, returning the loss."""
    import torch
    from torch import nn
    torch.set_num_threads(1)
    torch.manual_seed(1)

    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.query, self.key, self.value, self.out = [nn.Linear(WIDTH, WIDTH) for _ in range(4)]

        def forward(self, x):
            q, k, v = [f(x).unflatten(2, (HEADS, -1)).transpose(1, 2)
                       for f in (self.query, self.key, self.value)]
            y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            return self.out(y.transpose(1, 2).flatten(2))

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.attention_norm, self.attention = nn.LayerNorm(WIDTH), Attention()
            self.mlp_norm = nn.LayerNorm(WIDTH)
            self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(),
                                     nn.Linear(4 * WIDTH, WIDTH))

        def forward(self, x):
            x = x + self.attention(self.attention_norm(x))
            return x + self.mlp(self.mlp_norm(x))

    class Gpt(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens, self.places = nn.Embedding(CHARACTERS, WIDTH), nn.Embedding(CONTEXT, WIDTH)
            self.blocks = nn.Sequential(*[Block() for _ in range(LAYERS)])
            self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, CHARACTERS)

        def forward(self, ids, where):
            return self.head(self.norm(self.blocks(self.tokens(ids) + self.places(where))))

    model = wrap(Gpt())
    optimizer = torch.optim.AdamW(model.parameters(), weight_decay=0.01)
    part = BATCH * CONTEXT // ranks
    places = rank * part + torch.arange(part)
    x = (places * 7919 % CHARACTERS).reshape(-1, CONTEXT)
    following = (places + 1) * 7919 % CHARACTERS
    where = torch.arange(CONTEXT)

    def step():
        loss = nn.functional.cross_entropy(model(x, where).flatten(0, 1), following)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss.item()

    return step
