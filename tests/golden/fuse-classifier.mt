# The last layer, softmax, cross-entropy and their gradients are one loop over the examples.
data {
  train = idx("x", "y")
  x     : f32[256]
  label : class[10]
}

model {
  h = relu(linear(x, 128))
  z = linear(h, 10)
}

train {
  loss      = cross_entropy(z, label)
  optimizer = sgd(0.1)
  batch     = 64
}
