# A param that decides a shape is fixed, the others are read at run time.
param hidden = 5
param gain   = 0.5 in 0..1
param rate   = 0.1

data {
  train = idx("x", "label")
  x     : f32[6]
  label : class[3]
}

model {
  h = relu(linear(x, hidden)) * gain
  y = linear(h, 3)
}

train {
  loss      = cross_entropy(y, label)
  optimizer = sgd(rate)
  batch     = 4
}
