# mtc --shards 3
# Mean and variance of all shards: each stops before them, forward and back.
data {
  train = idx("x", "label")
  x     : f32[5]
  label : class[3]
}

model {
  h = batch_norm(linear(x, 6, bias = false), sync = true)
  y = linear(relu(h), 3)
}

train {
  loss      = cross_entropy(y, label)
  optimizer = sgd(0.1, momentum = 0.9)
  batch     = 10
}
