# Over one axis, over some, over all.
data {
  train = idx("x", "label")
  x     : f32[6]
  label : class[3]
}

model {
  a = reshape(x, [1, 2, 3])
  b = sum(a, axis = 1) + max(a, axis = [0, 1]) + mean(a)
  y = linear(flatten(b), 3)
}

train {
  loss      = cross_entropy(y, label)
  optimizer = sgd(0.1)
  batch     = 4
}
