# mtc --shards 3
# A batch of 10 in shards of 4, 4 and 2: what each adds to sums over them, then the update of those.
data {
  train = idx("x", "label")
  x     : f32[5]
  label : class[3]
}

model {
  h = batch_norm(linear(dropout(x, 0.5), 6))
  y = linear(relu(h), 3)
}

train {
  loss      = cross_entropy(y, label)
  optimizer = sgd(0.1, momentum = 0.9)
  batch     = 10
}
