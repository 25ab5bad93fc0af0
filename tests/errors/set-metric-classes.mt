data {
  train = idx("x", "y", "z")
  x     : f32[3]
  y     : class[4]
  z     : u8[1]
}
model {
  s = linear(x, 4)
  p = sigmoid(linear(x, 1))
}
train {
  loss      = cross_entropy(s, y)
  metric    = [precision(s, y, average = "binary"), recall(s, y, average = "mikro"), f1(s, y, average = 2),
      precision(s, y, threshold = 0.3), roc_auc(linear(x, 3), y), top_k_accuracy(s, y), roc_auc(p, x),
      average_precision("s", y)]
  optimizer = adam(1e-3)
}
