# Axes of size 1 and missing ones are stretched.
data {
  train = idx("x", "label")
  x     : f32[6]
  label : class[3]
}

model {
  a = reshape(x, [2, 3])
  b = a + weight([3]) * weight([2, 1])
  y = linear(flatten(b), 3)
}

train {
  loss      = cross_entropy(y, label)
  optimizer = sgd(0.1)
  batch     = 4
}
