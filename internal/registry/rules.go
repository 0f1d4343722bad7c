package registry

import (
	"context"
	"maps"

	"forerun.dev/forerun/internal/forerun"
)

// A rule's trigger knows of it and whether it is active, so that firing reads one record. A rule whose trigger does not know of
// it (that was deleted, and perhaps made anew) is inactive. Both records are changed together.

// PutRule creates a rule, active, or updates it. What is said of PutEntity holds here too; the error is forerun.Invalid if
// the trigger is not there.
func (r *Registry) PutRule(ctx context.Context, name forerun.Name, overwrite bool, change func(old *Entity) (*Entity, error)) (rule *Entity, active bool, err error) {
	rule, err = again(name, func() (*Entity, error) {
		f, err := r.findToPut(ctx, Rules, name, overwrite)
		if err != nil {
			return nil, err
		}
		changed, err := change(f.entity)
		if err != nil {
			return nil, err
		}
		rule := f.next(Rules, name, changed)
		t := new(transaction)
		t.replace(r, f, rule)
		active = true
		if f.entity != nil {
			if active, err = r.unlink(ctx, t, f.entity, rule.Trigger); err != nil {
				return nil, err
			}
		}
		if err := r.link(ctx, t, rule, active); err != nil {
			return nil, err
		}
		return rule, t.apply(ctx, r)
	})
	return rule, active, err
}

// unlink tells whether a rule was active, and takes it from its trigger if that is not its next one. The trigger must not change meanwhile,
// nor be made, also if it does not know of the rule: that may be set active.
func (r *Registry) unlink(ctx context.Context, t *transaction, rule *Entity, next forerun.Name) (active bool, err error) {
	f, err := r.find(ctx, rule.Trigger)
	if err != nil {
		return false, err
	}
	t.Expect = append(t.Expect, unchanged(entityRecord(rule.Trigger), f.version))
	if f.entity == nil {
		return false, nil
	}
	link, linked := f.entity.Rules[rule.Name]
	if linked && next != rule.Trigger {
		trigger := *f.entity
		trigger.Rules = maps.Clone(trigger.Rules)
		delete(trigger.Rules, rule.Name)
		t.replace(r, f, &trigger)
	}
	return linked && link.Active, nil
}

// link ties a rule to its trigger.
func (r *Registry) link(ctx context.Context, t *transaction, rule *Entity, active bool) error {
	f, err := r.find(ctx, rule.Trigger)
	if err != nil {
		return err
	}
	if f.entity == nil || f.entity.Collection != Triggers {
		return forerun.Errorf(forerun.Invalid, rule.Name.String(), "trigger %s does not exist", rule.Trigger)
	}
	trigger := *f.entity
	if trigger.Rules = maps.Clone(trigger.Rules); trigger.Rules == nil {
		trigger.Rules = make(map[forerun.Name]*RuleLink)
	}
	trigger.Rules[rule.Name] = &RuleLink{Action: rule.Action, Active: active}
	t.replace(r, f, &trigger)
	return nil
}

// SetRule makes a rule active or inactive, the latter also on a full disk and over the tenant's quota: it ends what may fill them. Errors
// are Entity's, and forerun.NotFound if a rule without a trigger is to become active.
func (r *Registry) SetRule(ctx context.Context, name forerun.Name, active bool) error {
	_, err := again(name, func() (*Entity, error) {
		f, err := r.findIn(ctx, Rules, name)
		if err != nil {
			return nil, err
		}
		rule := f.entity
		is, err := r.Active(ctx, rule)
		if err != nil || is == active {
			return rule, err
		}
		t := new(transaction)
		t.Expect, t.Owed = f.expect(name), !active
		if err := r.link(ctx, t, rule, active); err != nil {
			if forerun.KindOf(err) == forerun.Invalid {
				err = forerun.Errorf(forerun.NotFound, name.String(), "Only rules with existing triggers can be activated")
			}
			return nil, err
		}
		return rule, t.apply(ctx, r)
	})
	return err
}

// Active tells whether a rule is.
func (r *Registry) Active(ctx context.Context, rule *Entity) (bool, error) {
	f, err := r.find(ctx, rule.Trigger)
	if err != nil || f.entity == nil {
		return false, err
	}
	link, ok := f.entity.Rules[rule.Name]
	return ok && link.Active, nil
}

// DeleteRule removes a rule, active or not, and returns what it was. Its trigger is written again, also on a full disk.
// Errors are Entity's.
func (r *Registry) DeleteRule(ctx context.Context, name forerun.Name) (*Entity, error) {
	return again(name, func() (*Entity, error) {
		f, err := r.findIn(ctx, Rules, name)
		if err != nil {
			return nil, err
		}
		t := new(transaction)
		t.Owed = true
		t.remove(f)
		if _, err := r.unlink(ctx, t, f.entity, forerun.Name{}); err != nil {
			return nil, err
		}
		return f.entity, t.apply(ctx, r)
	})
}
