data {
  train = idx("x", "y")
  x     : f32[3]
  y     : class[4]
}
model {
  s = linear(x, 4)
}
train {
  loss      = cross_entropy(s, y)
  metric    = [roc_auc(1, x), f1(y, 1), precision(1, y)]
  optimizer = adam(1e-3)
}
