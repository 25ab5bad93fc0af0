# The norm of all gradients: squares summed in parts of each, then over the gradients, then over the parts. Three phases
# follow the gradients, however many weights there are.
data {
  train = idx("x", "y")
  x     : f32[784]
  y     : class[10]
}

model {
  a = relu(linear(x, 256))
  b = relu(linear(a, 256))
  c = relu(linear(b, 256))
  z = linear(c, 10)
}

train {
  loss      = cross_entropy(z, y)
  optimizer = adam(linear_lr(1e-3))
  batch     = 256
  clip_norm = 1
}
