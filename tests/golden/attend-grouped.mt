# mtc --precision bf16
# Queries in groups that share a key, which are made apart from them: attention's operand is put together first.
data {
  train = idx("tokens", "target")
  tokens : f32[20, 16]
  target : f32[20, 32]
}

model {
  q     = linear(tokens, 32, bias = false)
  k     = linear(tokens, 16, bias = false)
  v     = linear(tokens, 16, bias = false)
  mixed = attention(q * 2, k, v, heads = 4, kv_heads = 2, causal = true, scale = 0.25, window = 8)
}

train {
  loss      = mse(mixed, target)
  optimizer = sgd(0.1)
  batch     = 4
}
