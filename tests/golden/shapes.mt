# Sizes of arguments have names; each is one number.
fn scores(a[n, k], b[_, k]) {
  assert n * k == 6 : "{n} rows of {k}"
  return linear(flatten(a + b), k)
}

data {
  train = idx("x", "label")
  x     : f32[6]
  label : class[3]
}

model {
  a = reshape(x, [2, 3])
  b = a * 2
  y = scores(a, b)
}

train {
  loss      = cross_entropy(y, label)
  optimizer = sgd(0.1)
  batch     = 4
}
