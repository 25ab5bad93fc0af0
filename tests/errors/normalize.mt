data {
  train = idx("x", "label")
  x     : f32[6]
  label : class[3]
}

model {
  a = normalize(x * x)
  b = normalize(label)
  c = denormalize(2, a)
  d = denormalize(x, reshape(x, [2, 3]))
  e = denormalize(0, 3)
  y = linear(x, 3)
}

train {
  loss      = cross_entropy(y, label)
  optimizer = sgd(0.1)
}
