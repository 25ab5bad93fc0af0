fn f(v) {
  return linear(v, 8)
}

data {
  train = idx("x", "y")
  x     : f32[8]
  label : class[4]
}

model {
  a = x
  b = x
  if training() {
    a = f(x)
    b = f(a)
  } else {
    b = f(x)
    a = f(b)
  }
  scores = linear(a + b, 4)
}

train {
  loss      = cross_entropy(scores, label)
  optimizer = sgd(0.1)
}
