# A layer of causal attention: one product makes q, k and v, and attention reads it as it lies, forward and backward.
data {
  train = idx("tokens", "label")
  tokens : f32[7, 6]
  label  : class[3]
}

model {
  qkv    = linear(tokens, 24)
  q      = slice(qkv, 1, 0, 8)
  k      = slice(qkv, 1, 8, 16)
  v      = slice(qkv, 1, 16, 24)
  mixed  = attention(q, k, v, heads = 2, causal = true)
  logits = linear(flatten(mixed), 3)
}

train {
  loss      = cross_entropy(logits, label)
  optimizer = sgd(0.1)
  batch     = 4
}
