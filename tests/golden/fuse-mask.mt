# The backward pass compares h with 0 itself: no mask is stored.
data {
  train = idx("x", "label")
  x     : f32[256]
  label : class[10]
}

model {
  h = relu(linear(x, 512))
  z = linear(h, 10)
}

train {
  loss      = cross_entropy(z, label)
  optimizer = sgd(0.1)
  batch     = 256
}
