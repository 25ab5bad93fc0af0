# The path of a weight leads through the functions that make it.
fn two(x, n) {
  hidden = relu(linear(x, n))
  return linear(hidden, n)
}

data {
  train = idx("x", "label")
  x     : f32[6]
  label : class[3]
}

model {
  a = two(x, 4)
  y = two(a, 3)
}

train {
  loss      = cross_entropy(y, label)
  optimizer = sgd(0.1)
  batch     = 4
}
