# An optimizer whose numbers are params.
param rate  = 1e-3
param decay = 0.01

data {
  train = idx("x", "label")
  x     : f32[6]
  label : class[3]
}

model {
  y = linear(x, 3)
}

train {
  loss      = cross_entropy(y, label)
  optimizer = adamw(rate, weight_decay = decay)
  batch     = 4
}
