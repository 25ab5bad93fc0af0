# The mask of dropout is made from its counter in the forward pass and again in the backward pass; that of ReLU is kept.
data {
  train = idx("x", "label")
  x     : f32[256]
  label : class[10]
}

model {
  h = dropout(relu(linear(x, 512)), 0.5)
  z = linear(h, 10)
}

train {
  loss      = cross_entropy(z, label)
  optimizer = sgd(0.1)
  batch     = 256
}
