# A free weight has the name of its value.
data {
  train = idx("x", "label")
  x     : f32[6]
  label : class[3]
}

model {
  scale = weight([6], init = constant(1))
  shift = weight([6], init = zeros())
  h = x * scale + shift
  y = linear(h, 3, bias = false)
}

train {
  loss      = cross_entropy(y, label)
  optimizer = sgd(0.1)
  batch     = 4
}
