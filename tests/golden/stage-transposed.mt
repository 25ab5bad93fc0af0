# The first product's row is kept, since the second one reads it in another order.
data {
  train = idx("x", "label")
  x     : f32[6]
  label : class[3]
}

model {
  h = reshape(linear(x, 12), [3, 4])
  z = linear(flatten(transpose(h, 0, 1)), 3)
}

train {
  loss      = cross_entropy(z, label)
  optimizer = sgd(0.1)
  batch     = 32
}
