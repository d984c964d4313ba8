"""PyTorch's side of the models in examples/: golden values come from them, and bench/ times them."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Block(nn.Module):
    def __init__(self, i, o, stride):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(i, o, 3, stride, 1, bias=False), nn.BatchNorm2d(o)
        self.conv2, self.bn2 = nn.Conv2d(o, o, 3, 1, 1, bias=False), nn.BatchNorm2d(o)
        self.downsample = nn.Sequential(nn.Conv2d(i, o, 1, stride, bias=False), nn.BatchNorm2d(o)) if stride != 1 or i != o else None

    def forward(self, x):
        y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        return F.relu(y + (self.downsample(x) if self.downsample else x))


class ResNet(nn.Module):
    def __init__(self, w, classes):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, w, 7, 2, 3, bias=False), nn.BatchNorm2d(w)
        for k in range(4):
            i, o = w * 2 ** max(k - 1, 0), w * 2 ** k
            setattr(self, "layer%d" % (k + 1), nn.Sequential(Block(i, o, 1 if k == 0 else 2), Block(o, o, 1)))
        self.fc = nn.Linear(8 * w, classes)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.bn1(self.conv1(x))), 3, 2, 1)
        for k in range(4):
            x = getattr(self, "layer%d" % (k + 1))(x)
        return self.fc(F.adaptive_avg_pool2d(x, 1).flatten(1))


class Transformer(nn.Module):
    def __init__(self, tokens, w, length):
        super().__init__()
        self.token, self.position = nn.Embedding(tokens, w), nn.Embedding(length, w)
        self.encoder = nn.TransformerEncoder(
            nn.TransformerEncoderLayer(w, 4, 4 * w, 0.0, "gelu", batch_first=True, norm_first=True),
            4, nn.LayerNorm(w), enable_nested_tensor=False)
        self.head = nn.Linear(w, tokens)

    def forward(self, ids):
        n = ids.shape[1]
        x = self.token(ids) + self.position(torch.arange(n))
        return self.head(self.encoder(x, mask=torch.triu(torch.ones(n, n, dtype=torch.bool), 1), is_causal=True))


class GPTLayer(nn.Module):
    def __init__(self, w, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(w, bias=False), nn.LayerNorm(w, bias=False)
        self.qkv, self.out = nn.Linear(w, 3 * w, bias=False), nn.Linear(w, w, bias=False)
        self.linear1, self.linear2 = nn.Linear(w, 4 * w, bias=False), nn.Linear(4 * w, w, bias=False)

    def forward(self, x):
        n, length, w = x.shape
        q, k, v = (t.view(n, length, self.heads, -1).transpose(1, 2) for t in self.qkv(self.norm1(x)).split(w, 2))
        x = x + self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(n, length, w))
        return x + self.linear2(F.gelu(self.linear1(self.norm2(x))))


class GPT(nn.Module):
    """The same function as Transformer without biases, written out with scaled_dot_product_attention, as users of PyTorch write it
    for speed."""
    def __init__(self, tokens, w, heads, layers, length):
        super().__init__()
        self.token, self.position = nn.Embedding(tokens, w), nn.Embedding(length, w)
        self.layers = nn.Sequential(*(GPTLayer(w, heads) for _ in range(layers)))
        self.norm, self.head = nn.LayerNorm(w, bias=False), nn.Linear(w, tokens, bias=False)

    def forward(self, ids):
        return self.head(self.norm(self.layers(self.token(ids) + self.position(torch.arange(ids.shape[1])))))
