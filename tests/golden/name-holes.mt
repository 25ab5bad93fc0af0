# A name with a value in it.
data {
  train = idx("x", "label")
  x     : f32[6]
  label : class[3]
}

model {
  h = x
  repeat i in 1..3 {
    h = linear(h, 6, name = "layers.{i}.fc")
  }
  y = linear(h, 3)
}

train {
  loss      = cross_entropy(y, label)
  optimizer = sgd(0.1)
  batch     = 4
}
