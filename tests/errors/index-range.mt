data {
  train = idx("images", "labels")
  x     : f32[6]
  label : class[3]
}
model {
  t = reshape(x, [2, 3])
  a = t[2] + t[3000000000]
  b = t[0, -4] + t[0, 3]
  c = t[:, 1:5]
  d = t[:, 2:2] + t[1:-2]
  e = t[0, 0, 0]
  f = x[0][0]
  g = t[0.5] + x[true]
  h = x[label]
  i = "text"[0]
  j = sum(x)[:]
  y = linear(a + b, 3)
}
train {
  loss      = cross_entropy(y, label)
  optimizer = sgd(0.1)
}
