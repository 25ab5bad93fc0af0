fn f(x) { return x * h }
data {
  train = idx("images", "labels")
  x     : f32[6]
  label : class[3]
}
model {
  h = 2
  y = linear(f(x), 3) * h
}
train {
  loss      = cross_entropy(y, label)
  optimizer = sgd(0.1)
}
