# mtc --shards 2
# Sums that are complete long before the backward pass ends go to other GPUs beside it.
data {
  train = idx("x", "label")
  x     : f32[1500]
  label : class[10]
}

model {
  h = x / 255
  repeat i in 0..3 {
    h = relu(linear(h, 1500))
  }
  y = linear(h, 10)
}

train {
  loss      = cross_entropy(y, label)
  optimizer = sgd(0.1, momentum = 0.9)
  batch     = 2048
}
