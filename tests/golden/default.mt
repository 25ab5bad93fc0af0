# A default may use the parameters before it.
fn f(x[n], half = n / 2, scale = 1 / half) {
  return linear(x * scale, half)
}

data {
  train = idx("x", "label")
  x     : f32[6]
  label : class[3]
}

model {
  y = f(x)
}

train {
  loss      = cross_entropy(y, label)
  optimizer = sgd(0.1)
  batch     = 4
}
