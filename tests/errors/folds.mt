data {
  train = idx("images", "labels")
  x     : f32[6]
  label : class[3]
}
model {
  a = where(any(x), x, 1)
  b = clamp(x)
  c = clamp(x, 2, 1)
  d = std(x, correction = 6)
  e = norm(x, p = 0.5)
  f = prod(x, axis = 1)
}
train {
  loss      = sum(a + b + c) + d + e + f + sum(one_hot(label, 3))
  optimizer = sgd(0.1)
  predict   = x
}
