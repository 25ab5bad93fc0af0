data {
  train = idx("images", "labels")
  x     : f32[6, 2]
  label : class[3]
}
model {
  a, b = topk(x, 7, axis = 0)
  c, d = topk(x, 3)
  e = sort(weight([5000]))
  f = topk(x, 2)
  g = argsort(x, axis = 2)
}
train {
  loss      = sum(a) + sum(b) + sum(c) + sum(d) + sum(e) + sum(f) + sum(g) + sum(one_hot(label, 3))
  optimizer = sgd(0.1)
  predict   = x
}
