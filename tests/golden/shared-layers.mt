# Layers that are called several times: two towers, a cell along a sequence, one for each repetition.
data {
  train = idx("left", "right", "label")
  left  : f32[4, 6]
  right : f32[4, 6]
  label : class[3]
}
fn rnn(x[steps, features], width) {
  layer cell(x, h) = tanh(linear(x, width) + linear(h, width, bias = false))
  h = weight([width], zeros(), name = "start")
  repeat t in 0..steps {
    h = cell(reshape(slice(x, 0, t, t + 1), [features]), h)
  }
  return h
}
model {
  layer tower(x, width = 5) = rnn(x, width)
  a = tower(left)
  b = tower(right)
  repeat i in 0..2 {
    layer mix(h) = relu(batch_norm(linear(h, 5)))
    a = mix(a)
    b = mix(b)
  }
  scores = linear(concat([a, b]), 3)
}
train {
  loss      = cross_entropy(scores, label)
  optimizer = sgd(0.1)
  batch     = 4
}
