param n = 6
data {
  train = idx("images", "labels")
  x     : f32[6]
  label : class[3]
}
model {
  assert n % 4 == 0 : "{n} is no multiple of 4"
  y = linear(x, 3)
}
train {
  loss      = cross_entropy(y, label)
  optimizer = sgd(0.1)
}
