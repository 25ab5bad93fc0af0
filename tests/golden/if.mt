# A condition known when compiling chooses statements.
param depth = 1

data {
  train = idx("x", "label")
  x     : f32[6]
  label : class[3]
}

model {
  if depth > 1 {
    h = relu(linear(x, 4))
  } else if depth == 1 {
    h = x * 2
  } else {
    h = x
  }
  y = linear(h, 3)
}

train {
  loss      = cross_entropy(y, label)
  optimizer = sgd(0.1)
  batch     = 4
}
