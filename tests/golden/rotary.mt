# Queries and keys turned by the angles of their positions.
data {
  train = idx("sequences", "labels")
  x     : f32[5, 12]
  label : class[4]
}

model {
  seen   = attention(rotary(linear(x, 8), 2), rotary(linear(x, 4), 1), linear(x, 4), heads = 2, kv_heads = 1)
  scores = linear(flatten(seen), 4)
}

train {
  loss      = cross_entropy(scores, label)
  optimizer = sgd(0.1)
  batch     = 3
}
