# One position of a language model: position and token are numbers of the running program, attention reads a cache.
param T = 8

data {
  train  = text("input.txt")
  window : class[11] [T + 1]
}

model {
  seen   = slice(window, 0, 0, T)
  next   = slice(window, 0, 1, T + 1)
  x      = embedding(seen, 11, 4) + weight([T, 4], name = "places", init = normal(0, 1))
  qkv    = linear(x, 12)
  a      = attention(slice(qkv, 1, 0, 4), slice(qkv, 1, 4, 8), slice(qkv, 1, 8, 12), heads = 2, causal = true)
  logits = linear(a, 11)
}

train {
  loss      = cross_entropy(logits, next)
  optimizer = sgd(0.1)
  batch     = 2
}
